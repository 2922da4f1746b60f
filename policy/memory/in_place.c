#include "policy/memory/in_place.h"

struct ranges in_place, outside;
