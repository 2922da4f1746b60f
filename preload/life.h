/* life.h: the engine starts, lives and ends with the process.
 *
 * Threads: any. Errors: none; without a driver, or with one that lacks what the engine needs, calls pass through, and a line says so.
 */
#ifndef REMAT_PRELOAD_LIFE_H
#define REMAT_PRELOAD_LIFE_H

#include "preload/rows.h"

/* The slow path of a hook while a bit of door_watch is set: counts the call, finds the driver, starts the engine in a process whose driver was initialised by a route that
 * passes no door, and looks for new libraries (bypass.h). */
void life_slow(enum hook_id id);
/* Starts the engine unless a start was tried before; the driver must be initialised. */
void life_start(void);

#endif
