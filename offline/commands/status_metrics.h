/* status_metrics.h: `remat status` for Prometheus, in its text exposition format (version 0.0.4): each metric once, with all its samples below it.
 *
 * Labels: `UUID` is the GPU's as NVML and DCGM's exporter write it, so that metrics of both can be joined on it. `pid` and `host` tell processes apart.
 *
 * Threads: no shared state. Errors: none; what cannot be written shows at the stream.
 */
#ifndef REMAT_OFFLINE_STATUS_METRICS_H
#define REMAT_OFFLINE_STATUS_METRICS_H

#include "offline/commands/jobs.h"

void status_metrics(const struct jobs *j, FILE *to);

#endif
