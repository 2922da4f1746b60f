/* kinds.h: drawing what a program has beside streams, events and stream-ordered memory (enum kind). */
#ifndef PROGRAMS_API_KINDS_H
#define PROGRAMS_API_KINDS_H

#include <stdbool.h>

/* Makes what the program's kinds need to begin with: tables in memory of several sorts, lists, a graph, textures. */
void kinds_begin(void);
/* One action of a kind that the program has. */
void kinds_act(void);
/* A layer, out = f(in), that depends on something which has just been written in a way that no operand shows; false: none was drawn. */
bool kinds_layer(int stream, int out, int in);

#endif
