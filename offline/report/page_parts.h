/* page_parts.h: the script and the style sheet of a page, as text; constant. */
#ifndef REMAT_OFFLINE_PAGE_PARTS_H
#define REMAT_OFFLINE_PAGE_PARTS_H


extern const char page_js[], page_css[];

#endif
