/* SPDX-License-Identifier: MIT */
extern double value;
