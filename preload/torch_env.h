/* torch_env.h: keeps the variables that choose PyTorch's allocator as `remat run` has set them (REMAT_ALLOCATOR): `export` in a shell script is mended when
 * the next program is loaded, os.environ[...] in a script when it calls setenv(). Settings that were left out are reported once the driver is used: most
 * programs of a shell script are not PyTorch.
 *
 * setenv(), unsetenv() and putenv() stand in front of the C library's, and hand every other variable on to them.
 *
 * Threads and errors: as the C library's functions.
 */
#ifndef REMAT_PRELOAD_TORCH_ENV_H
#define REMAT_PRELOAD_TORCH_ENV_H

#include "tracer/machine/alloc_conf.h"

/* Called by the library's constructor: reads REMAT_ALLOCATOR, and mends the variables that the process was started with. */
void torch_env_at_load(void);
/* The allocator that remat has chosen; ALLOC_CONF_NONE before torch_env_at_load() and where remat leaves the program alone. */
enum alloc_conf torch_env_allocator(void);
/* Settings that the program gives to PyTorch itself, mended into mended[TORCH_ENV_SETTINGS]; false: the settings stay as they are. */
enum { TORCH_ENV_SETTINGS = 4096 };
bool torch_env_mended(const char *settings, char *mended);
/* The program uses a device: reports the settings that were left out, and makes later ones be reported at once. */
void torch_env_tell(void);

#endif
