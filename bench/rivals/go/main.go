// SPDX-License-Identifier: MIT

// Go's side of the benchmark: the rows of weft-bench with the same command line and the same
// output. This file has the command line and the report, rows.go the work, time.go the rows
// with timers, wait.go the locks and channels.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"strconv"
	"strings"
)

type options struct {
	json    bool
	workers int
	filter  string
	reps    int
}

// fail exits with an error: a wrong result must never look like a figure.
func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "rival-go: "+format+"\n", args...)
	os.Exit(1)
}

func parseOptions() options {
	var o options
	flag.BoolVar(&o.json, "json", false, "print one JSON object per row")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "GOMAXPROCS")
	flag.StringVar(&o.filter, "filter", "", "a row's name, or how it begins")
	flag.IntVar(&o.reps, "reps", 7, "measured repetitions")
	flag.Parse()
	if flag.NArg() > 0 || o.workers < 1 || o.reps < 1 {
		fail("usage: rival-go [--json] [--workers N] [--filter NAME] [--reps R]")
	}
	return o
}

// selectRows returns the row with exactly this name, or else every row whose name starts with it.
func selectRows(filter string) []row {
	var selected []row
	for _, r := range rows {
		if r.name == filter {
			return []row{r}
		}
		if strings.HasPrefix(r.name, filter) {
			selected = append(selected, r)
		}
	}
	return selected
}

func report(r row, o options, samples []float64) {
	sort.Float64s(samples)
	n := len(samples)
	median := (samples[(n-1)/2] + samples[n/2]) / 2
	format := "%-24s %3d %14.2[4]f %-5[3]s [%.2[5]f - %.2[6]f] n=%[7]d\n"
	if o.json {
		format = `{"bench":"%s","workers":%d,"unit":"%s",` +
			`"median":%.2f,"min":%.2f,"max":%.2f,"n":%d}` + "\n"
	}
	fmt.Printf(format, r.name, o.workers, r.unit, median, samples[0], samples[n-1], n)
}

// runInChild runs one row in its own process, so that the memory and the goroutines that a row
// leaves behind do not affect the next one.
func runInChild(r row, o options) {
	program, err := os.Executable()
	if err != nil {
		fail("%v", err)
	}
	child := exec.Command(program, "--filter", r.name, "--json="+strconv.FormatBool(o.json),
		"--workers", strconv.Itoa(o.workers), "--reps", strconv.Itoa(o.reps))
	child.Stdout = os.Stdout
	child.Stderr = os.Stderr
	if err := child.Run(); err != nil {
		fail("%s: %v", r.name, err)
	}
}

func main() {
	o := parseOptions()
	selected := selectRows(o.filter)
	switch len(selected) {
	case 0:
		fail("no row is named '%s'", o.filter)
	case 1:
		runtime.GOMAXPROCS(o.workers)
		report(selected[0], o, selected[0].run(o.reps))
	default:
		for _, r := range selected {
			runInChild(r, o)
		}
	}
}
