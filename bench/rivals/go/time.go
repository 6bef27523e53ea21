// SPDX-License-Identifier: MIT

package main

import (
	"sort"
	"time"
)

func neverCalled() {
	fail("a timer fired after it was cancelled")
}

// createCancel gives the timer a function to call, which is faster than the channel of
// time.NewTimer.
func createCancel(reps int) []float64 {
	const timers = 1_000_000
	return measureTask(reps, timers, func() time.Duration {
		cancelled := int64(0)
		start := time.Now()
		for i := 0; i < timers; i++ {
			if time.AfterFunc(time.Second, neverCalled).Stop() {
				cancelled++
			}
		}
		elapsed := time.Since(start)
		done.Add(cancelled)
		return elapsed
	})
}

// millionSleepsCPU takes one sample, regardless of reps: a second one would reuse the stacks
// that the first one freed.
func millionSleepsCPU(_ int) []float64 {
	const tasks, longest = 1_000_000, time.Second
	var sleepers [1000]func() // one for each duration
	for i := range sleepers {
		duration := time.Duration(1+i) * time.Millisecond
		sleepers[i] = func() {
			time.Sleep(duration)
			countInBatch()
		}
	}
	result := make(chan float64)
	go func() {
		start, before := time.Now(), cpuTime()
		batch.Add(tasks)
		for i := 0; i < tasks; i++ {
			go sleepers[i*7919%1000]()
		}
		batch.Wait()
		cpu := cpuTime() - before
		if time.Since(start) < longest {
			fail("a sleep was too short")
		}
		result <- cpu / 1e6
	}()
	cpu := <-result
	check(tasks)
	return []float64{cpu}
}

func latenessP99(reps int) []float64 {
	const tasks, sleeps = 1000, 10
	samples := make([]float64, tasks*sleeps)
	sleeper := func(task int) {
		for step := 0; step < sleeps; step++ {
			duration := time.Duration(1+(task+37*step)*7919%100) * time.Millisecond
			deadline := time.Now().Add(duration)
			time.Sleep(duration)
			late := time.Since(deadline)
			if late < 0 {
				fail("a sleep was too short")
			}
			samples[task*sleeps+step] = float64(late.Nanoseconds())
			done.Add(1)
		}
		batch.Done()
	}
	return measure(reps, func() float64 {
		batch.Add(tasks)
		for task := 0; task < tasks; task++ {
			go sleeper(task)
		}
		batch.Wait()
		check(tasks * sleeps)
		sort.Float64s(samples)
		return samples[len(samples)*99/100]
	})
}
