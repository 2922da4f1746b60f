/* torch_env.h: the variables that choose PyTorch's allocator stay as `remat run` has set them (REMAT_ALLOCATOR), whoever sets others: `export` in a shell
 * script is mended when the next program is loaded, os.environ[...] in a script when it calls setenv(). What is left out of such settings is told once
 * the driver is used: most programs of a shell script are not PyTorch.
 *
 * setenv(), unsetenv() and putenv() stand in front of the C library's. They do what it does for every other variable.
 *
 * Threads: as the C library's functions. Errors: theirs.
 */
#ifndef REMAT_PRELOAD_TORCH_ENV_H
#define REMAT_PRELOAD_TORCH_ENV_H

#include "tracer/machine/alloc_conf.h"

/* From the library's constructor: REMAT_ALLOCATOR is read, and what the process was started with is mended. */
void torch_env_at_load(void);
/* What remat has chosen; ALLOC_CONF_NONE before torch_env_at_load() and where remat leaves the program alone. */
enum alloc_conf torch_env_allocator(void);
/* Settings as the program gives them to PyTorch itself become what serves, into mended[TORCH_ENV_SETTINGS]; false: they stay as they are. */
enum { TORCH_ENV_SETTINGS = 4096 };
bool torch_env_mended(const char *settings, char *mended);
/* The program uses a device: says what was left out, and from now on says it at once. */
void torch_env_tell(void);

#endif
