/* What the runner sees of its own walls, for the harness to compare with the plan. */
#ifndef REPORT_H
#define REPORT_H
#include "link.h"
void report(const struct frame *frame);
#endif
