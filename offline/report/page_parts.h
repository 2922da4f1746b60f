/* page_parts.h: the scripts and the style sheet of a page, as text; constant. page_js is the first of the scripts, which share one scope. */
#ifndef REMAT_OFFLINE_PAGE_PARTS_H
#define REMAT_OFFLINE_PAGE_PARTS_H

extern const char page_js[], page_chart_js[], page_groups_js[], page_css[];

#endif
