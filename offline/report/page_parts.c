/* page_parts.c: the page's scripts and style, as the files beside this one hold them. The build's folder must be the
 * project's: .incbin reads relative to it. */
#include "offline/report/page_parts.h"
#include "offline/report/page.h"

#define PART(symbol, file)                                                                                                    \
    __asm__(".pushsection .rodata\n.globl " #symbol "\n.type " #symbol ", @object\n" #symbol ":\n.incbin \"" file              \
            "\"\n.byte 0\n.size " #symbol ", . - " #symbol "\n.popsection\n")

PART(page_js, "offline/report/page.js");
PART(page_chart_js, "offline/report/page_chart.js");
PART(page_groups_js, "offline/report/page_groups.js");
PART(page_css, "offline/report/page.css");
