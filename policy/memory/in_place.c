#include "policy/memory/in_place.h"

struct ranges in_place, in_place_outside;
