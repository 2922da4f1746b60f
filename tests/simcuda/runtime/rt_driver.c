/*
 * The driver behind the runtime, and which device is current. A thread's device is kept here and made current in the driver
 * at the thread's next call; the driver is not asked again until the device or the generation of contexts changes. A thread
 * that comes with a driver context of its own (cuCtxSetCurrent before its first runtime call) works on that one's device.
 */
#include "tests/simcuda/runtime/rt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct rt_driver rt_drv;

enum { MAX_DEVICES = 64 };
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int init_result;
static int device_count;
static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext contexts[MAX_DEVICES]; /* retained primary contexts, under context_lock */
static _Atomic unsigned generation = 1; /* of contexts: grows when one is reset */
static _Atomic bool exiting;

static __thread int my_device;
static __thread bool my_device_set; /* by cudaSetDevice, or taken from the driver at the first call */
static __thread unsigned my_generation; /* the generation in which my_device was made current; 0: not current */

static void (*write_stats)(void); /* of the simulated driver; NULL: another driver, or none yet */

/* os._exit and the like run no destructor, which is where the simulated driver writes SIMGPU_STATS. exit() itself does not come
   this way. */
RT_EXPORT void _exit(int status)
{
    if (write_stats)
        write_stats();
    for (;;)
        syscall(SYS_exit_group, status);
}

RT_EXPORT void _Exit(int status)
{
    _exit(status);
}

static void at_exit(void)
{
    exiting = true;
}

bool rt_exiting(void)
{
    return exiting;
}

static int load(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return RT_INSUFFICIENT_DRIVER;
    __typeof__(cuGetProcAddress_v2) *ask = (__typeof__(ask))dlsym(handle, "cuGetProcAddress_v2");
    if (!ask)
        return RT_INSUFFICIENT_DRIVER;
    write_stats = (void (*)(void))dlsym(handle, "simgpu_write_stats");
    static const struct {
        const char *name;
        int version;
        size_t at;
    } calls[] = {
#define RT_CALL(symbol, name, version) { #name, version, offsetof(struct rt_driver, symbol) },
#include "tests/simcuda/runtime/rt_driver.def"
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        void **to = (void **)((char *)&rt_drv + calls[i].at);
        CUdriverProcAddressQueryResult status;
        if (ask(calls[i].name, to, calls[i].version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status) || !*to) {
            fprintf(stderr, "simcuda: this driver has no %s of version %d: use the simulated one\n", calls[i].name,
                    calls[i].version);
            return RT_INSUFFICIENT_DRIVER;
        }
    }
    return RT_SUCCESS;
}

static void init(void)
{
    init_result = load();
    if (!init_result)
        init_result = (int)rt_drv.cuInit(0);
    if (!init_result)
        init_result = (int)rt_drv.cuDeviceGetCount(&device_count);
    if (!init_result && device_count > MAX_DEVICES)
        device_count = MAX_DEVICES;
    atexit(at_exit);
}

int rt_init(void)
{
    pthread_once(&once, init);
    return init_result;
}

int rt_device_count(void)
{
    return device_count;
}

int rt_context(int device, CUcontext *out)
{
    int e = rt_init();
    if (e)
        return e;
    if (device < 0 || device >= device_count)
        return RT_INVALID_DEVICE;
    pthread_mutex_lock(&context_lock);
    CUdevice dev;
    if (!contexts[device]) {
        e = (int)rt_drv.cuDeviceGet(&dev, device);
        if (!e)
            e = (int)rt_drv.cuDevicePrimaryCtxRetain(&contexts[device], dev);
        if (e)
            contexts[device] = NULL;
    }
    *out = contexts[device];
    pthread_mutex_unlock(&context_lock);
    return e;
}

void rt_forget_contexts(void)
{
    generation++;
}

/* A context that the program made current through the driver decides which device this thread works on. */
static void adopt_device(void)
{
    CUcontext now = NULL;
    CUdevice dev;
    if (!rt_drv.cuCtxGetCurrent(&now) && now && !rt_drv.cuCtxGetDevice(&dev))
        my_device = dev;
    my_device_set = true;
}

int rt_use(void)
{
    if (my_generation == generation)
        return RT_SUCCESS;
    int e = rt_init();
    if (e)
        return e;
    if (!my_device_set)
        adopt_device();
    unsigned now = generation;
    CUcontext ctx;
    e = rt_context(my_device, &ctx);
    if (!e)
        e = (int)rt_drv.cuCtxSetCurrent(ctx);
    if (!e)
        my_generation = now;
    return e;
}

int rt_set_device(int device)
{
    int e = rt_init();
    if (e)
        return e;
    if (device < 0 || device >= device_count)
        return RT_INVALID_DEVICE;
    if (!my_device_set || device != my_device)
        my_generation = 0;
    my_device = device;
    my_device_set = true;
    return rt_use();
}

int rt_current_device(void)
{
    return my_device;
}
