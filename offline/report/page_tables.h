/* page_tables.h: the tables of a page, which stand in it as they are: schedules, prices, what is run again, the largest tensors. What is
 * alike (twelve blocks' dropout) is one row that unfolds.
 *
 * Threads: no shared state. Errors: 0 or -ENOMEM.
 */
#ifndef REMAT_OFFLINE_PAGE_TABLES_H
#define REMAT_OFFLINE_PAGE_TABLES_H

#include "offline/report/page_data.h"

void page_tables_schedules(struct page *p);
void page_tables_prices(struct page *p); /* nothing without a curve */
int page_tables_replays(struct page *p, int k); /* of line k */
int page_tables_tensors(struct page *p);

#endif
