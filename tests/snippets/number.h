/* SPDX-License-Identifier: MIT */
extern double *values;
extern uint32_t *lengths;
extern uint64_t *offsets;
