/* active.c: see active.h. */
#include "policy/active.h"

static atomic_bool active;
_Thread_local enum eng_stack eng_stack_used;
atomic_bool eng_stack_matters;

bool eng_active(void) { return atomic_load_explicit(&active, memory_order_relaxed); }

void active_set(bool is_active) { atomic_store(&active, is_active); }
