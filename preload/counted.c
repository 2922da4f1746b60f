/* counted.c: see counted.h. */
#include "preload/counted.h"

/* Bits of one texel with all its channels. */
static size_t texel_bits(CUarray_format f, unsigned channels)
{
    switch ((int)f) {
    case CU_AD_FORMAT_UNSIGNED_INT8: case CU_AD_FORMAT_SIGNED_INT8:
        return 8u * channels;
    case CU_AD_FORMAT_UNSIGNED_INT16: case CU_AD_FORMAT_SIGNED_INT16: case CU_AD_FORMAT_HALF:
        return 16u * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32: case CU_AD_FORMAT_SIGNED_INT32: case CU_AD_FORMAT_FLOAT:
        return 32u * channels;
    case CU_AD_FORMAT_UNORM_INT8X1: case CU_AD_FORMAT_SNORM_INT8X1:
        return 8;
    case CU_AD_FORMAT_UNORM_INT8X2: case CU_AD_FORMAT_SNORM_INT8X2: case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X1:
        return 16;
    case CU_AD_FORMAT_UNORM_INT8X4: case CU_AD_FORMAT_SNORM_INT8X4: case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X2: case CU_AD_FORMAT_UNORM_INT_101010_2:
        return 32;
    case CU_AD_FORMAT_UNORM_INT16X4: case CU_AD_FORMAT_SNORM_INT16X4:
        return 64;
    case CU_AD_FORMAT_BC1_UNORM: case CU_AD_FORMAT_BC1_UNORM_SRGB: case CU_AD_FORMAT_BC4_UNORM:
    case CU_AD_FORMAT_BC4_SNORM:
        return 4;
    case CU_AD_FORMAT_BC2_UNORM: case CU_AD_FORMAT_BC2_UNORM_SRGB: case CU_AD_FORMAT_BC3_UNORM:
    case CU_AD_FORMAT_BC3_UNORM_SRGB: case CU_AD_FORMAT_BC5_UNORM: case CU_AD_FORMAT_BC5_SNORM:
    case CU_AD_FORMAT_BC6H_UF16: case CU_AD_FORMAT_BC6H_SF16: case CU_AD_FORMAT_BC7_UNORM:
    case CU_AD_FORMAT_BC7_UNORM_SRGB:
        return 8;
    default: /* video formats: planes of 8 to 16 bits a sample, three samples at most */
        return 48;
    }
}

static size_t half(size_t n, unsigned level)
{
    size_t h = level < 64 ? n >> level : 0;
    return h ? h : 1;
}

size_t counted_array_bytes(size_t width, size_t height, size_t depth, CUarray_format format, unsigned channels,
                           unsigned flags, unsigned levels)
{
    if (flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return 0;
    bool layered = flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    size_t bits = texel_bits(format, channels), sum = 0;
    for (unsigned l = 0; l < levels && l < 64; l++) {
        size_t w = half(width, l), h = height ? half(height, l) : 1, d = depth ? (layered ? depth : half(depth, l)) : 1;
        size_t texels, b;
        if (__builtin_mul_overflow(w, h, &texels) || __builtin_mul_overflow(texels, d, &texels) ||
            __builtin_mul_overflow(texels, bits, &b) || __builtin_add_overflow(sum, (b + 7) / 8, &sum))
            return SIZE_MAX / 2; /* more bytes than any device has: the reservation fails */
    }
    return sum;
}
