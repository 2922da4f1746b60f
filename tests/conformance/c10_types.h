/* c10_types.h: what PyTorch's libraries hand each other, as its C++ compiler lays it out: std::string, c10::SourceLocation, and the mangled name of the first. */
#ifndef REMAT_TESTS_C10_TYPES_H
#define REMAT_TESTS_C10_TYPES_H

#include <stddef.h>
#include <stdint.h>

struct string {
    char *text;
    size_t length, capacity, more;
};
struct place {
    const char *function, *file;
    uint32_t line;
};
#define STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

#endif
