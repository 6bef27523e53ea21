/* SPDX-License-Identifier: MIT */
/* C only: the checker is for code with C11 atomics. */
