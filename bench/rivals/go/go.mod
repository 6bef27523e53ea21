// SPDX-License-Identifier: MIT

module rival-go

go 1.21
