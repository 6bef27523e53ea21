/* SPDX-License-Identifier: MIT */
extern uint64_t *numbers;
