/* hook_texture.c: textures and surfaces. Memory that they show stays resident for good, and a launch that may use one is no longer run again
 * (policy/op/texture.h). Arrays are counted memory (hook_memory.c); copies to and from arrays are ops that are never repeated.
 */
#include "policy/reach.h"
#include "preload/door.h"

/* Pins the memory that `r` shows. Linear memory, of either shape, begins its description with the address. */
static int pin_shown(const CUDA_RESOURCE_DESC *r)
{
    if (r && (r->resType == CU_RESOURCE_TYPE_LINEAR || r->resType == CU_RESOURCE_TYPE_PITCH2D))
        DOOR_TRY(eng_pin(r->res.linear.devPtr, 0, "texture"));
    return CUDA_SUCCESS;
}

static int on_texture(__typeof__(&cuTexObjectCreate) real, CUtexObject *t, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *d,
                      const CUDA_RESOURCE_VIEW_DESC *v)
{
    DOOR_TRY(pin_shown(r));
    DOOR_TRY(real(t, r, d, v));
    eng_reach_texture_made(*t);
    return CUDA_SUCCESS;
}

static int on_surface(__typeof__(&cuSurfObjectCreate) real, CUsurfObject *s, const CUDA_RESOURCE_DESC *r)
{
    DOOR_TRY(pin_shown(r));
    DOOR_TRY(real(s, r));
    eng_reach_texture_made(*s);
    return CUDA_SUCCESS;
}

/* Destroys a texture or a surface. The handle is forgotten before: afterwards another thread may be given the same one. */
static int on_object_gone(__typeof__(&cuTexObjectDestroy) real, CUtexObject t)
{
    eng_reach_texture_gone(t);
    int r = real(t);
    if (r)
        eng_reach_texture_made(t);
    return r;
}

/* ---- references: variables of a module, by which any of its kernels may read or write ---------------------------------- */

static int on_texref(__typeof__(&cuTexRefSetAddress_v2) real, size_t *at, CUtexref t, CUdeviceptr p, size_t n)
{
    DOOR_TRY(eng_pin(p, n, "texture"));
    eng_reach_texture_bound();
    return real(at, t, p, n);
}

static int on_texref2d(__typeof__(&cuTexRefSetAddress2D_v3) real, CUtexref t, const CUDA_ARRAY_DESCRIPTOR *d,
                       CUdeviceptr p, size_t pitch)
{
    DOOR_TRY(eng_pin(p, 0, "texture"));
    eng_reach_texture_bound();
    return real(t, d, p, pitch);
}

static int on_texref_array(__typeof__(&cuTexRefSetArray) real, CUtexref t, CUarray a, unsigned flags)
{
    eng_reach_texture_bound();
    return real(t, a, flags);
}

static int on_texref_mipmap(__typeof__(&cuTexRefSetMipmappedArray) real, CUtexref t, CUmipmappedArray a, unsigned flags)
{
    eng_reach_texture_bound();
    return real(t, a, flags);
}

static int on_surfref(__typeof__(&cuSurfRefSetArray) real, CUsurfref s, CUarray a, unsigned flags)
{
    eng_reach_texture_bound();
    return real(s, a, flags);
}

HOOKS_TEXTURE(DOOR_EXPORT)
