// SPDX-License-Identifier: MIT

package main

import (
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A row takes a number of repetitions and returns one sample for each. It first repeats its
// work unmeasured, and checks after every repetition that all the work was done. GOMAXPROCS is
// set before it runs.
type row struct {
	name string
	unit string
	run  func(reps int) []float64
}

// There is no sched.self_wake: a goroutine has no waker that it could call. A goroutine is both
// task and fiber, so the fiber rows are the task rows. Of blitz-io's rows, only those with a
// natural form in Go are here.
var rows = []row{
	{"sched.spawn_join", "ns", spawnJoin},
	{"sched.spawn_batch", "ns", spawnBatch},
	{"sched.yield", "ns", yieldInTurn},
	{"sched.cross_wake", "ns", crossWake},
	{"sched.inject", "ns", inject},
	{"sched.wake_outside", "ns", wakeOutside},
	{"sched.task_bytes", "bytes", taskBytes},
	{"sched.idle_cpu", "ns", idleCPU},
	{"fiber.yield", "ns", yieldInTurn},
	{"fiber.spawn_join", "ns", spawnJoin},
	{"fiber.spawn_batch", "ns", spawnBatch},
	{"fiber.bytes", "bytes", taskBytes},
	{"time.create_cancel", "ns", createCancel},
	{"time.million_sleeps_cpu", "ms", millionSleepsCPU},
	{"time.lateness_p99", "ns", latenessP99},
	{"chan.pingpong", "ns", chanPingpong},
	{"chan.1_1", "ns", chan11},
	{"chan.4_1", "ns", chan41},
	{"chan.4_4", "ns", chan44},
	{"chan.oneshot", "ns", chanOneshot},
	{"chan.watch", "ns", chanWatch},
	{"chan.broadcast", "ns", chanBroadcast},
	{"sync.mutex", "ns", syncMutex},
	{"sync.mutex_64", "ns", syncMutex64},
	{"sync.rwlock_4r2w", "ns", syncRWLock4r2w},
	{"sync.semaphore_8_2", "ns", syncSemaphore82},
	{"sync.notify", "ns", syncNotify},
	{"sync.barrier", "ns", syncBarrier},
	{"select.2", "ns", select2},
	{"blitz-io.mutex", "ns", blitzMutex},
	{"blitz-io.rwlock_read", "ns", blitzRWLockRead},
	{"blitz-io.rwlock_write", "ns", blitzRWLockWrite},
	{"blitz-io.semaphore", "ns", blitzSemaphore},
	{"blitz-io.oncecell_set", "ns", blitzOnceCellSet},
	{"blitz-io.channel_send", "ns", blitzChannelSend},
	{"blitz-io.channel_recv", "ns", blitzChannelRecv},
	{"blitz-io.channel_roundtrip", "ns", blitzChannelRoundtrip},
	{"blitz-io.oneshot", "ns", chanOneshot},
	{"blitz-io.channel_mpmc", "ns", blitzChannelMPMC},
	{"blitz-io.mutex_contended", "ns", blitzMutexContended},
	{"blitz-io.rwlock_contended", "ns", blitzRWLockContended},
	{"blitz-io.semaphore_contended", "ns", blitzSemaphoreContended},
	{"blitz-io.task_spawn", "ns", blitzTaskSpawn},
	{"blitz-io.task_spawn_batch", "ns", blitzTaskSpawnBatch},
	{"volt.yield", "ns", voltYield},
	{"volt.spsc", "ns", voltSPSC},
	{"volt.mpmc_1", "ns", voltMPMC1},
	{"volt.mpmc_2", "ns", voltMPMC2},
	{"volt.mpmc_4", "ns", voltMPMC4},
	{"volt.pipeline", "ns", voltPipeline},
	{"volt.mutex", "ns", voltMutex},
	{"volt.spawn_hot", "ns", voltSpawnHot},
	{"volt.parallel", "ms", voltParallel},
}

const warmups = 2

// done is the counter that the goroutines share, on its own cache lines. The functions passed
// to go are created once, so that a spawn allocates no closure.
var done struct {
	_ [128]byte
	atomic.Int64
	_ [128]byte
}

// check verifies that all the work was done, and resets the counter.
func check(expected int64) {
	if found := done.Swap(0); found != expected {
		fail("%d steps were counted, not %d", found, expected)
	}
}

// measure warms up, then takes one sample per repetition.
func measure(reps int, sample func() float64) []float64 {
	for warmup := 0; warmup < warmups; warmup++ {
		sample()
	}
	samples := make([]float64, reps)
	for rep := range samples {
		samples[rep] = sample()
	}
	return samples
}

// measureTask measures work that runs in a goroutine and reads the clock itself.
func measureTask(reps int, ops int64, work func() time.Duration) []float64 {
	return measure(reps, func() float64 {
		result := make(chan time.Duration)
		go func() { result <- work() }()
		elapsed := <-result
		check(ops)
		return float64(elapsed.Nanoseconds()) / float64(ops)
	})
}

// spawnJoin joins through one unbuffered channel, which is a little faster than a
// sync.WaitGroup for one goroutine at a time.
func spawnJoin(reps int) []float64 {
	const tasks = 100_000
	joined := make(chan struct{})
	counter := func() {
		done.Add(1)
		joined <- struct{}{}
	}
	return measureTask(reps, tasks, func() time.Duration {
		start := time.Now()
		for i := 0; i < tasks; i++ {
			go counter()
			<-joined
		}
		return time.Since(start)
	})
}

// batch waits for the goroutines of a batch.
var batch sync.WaitGroup

func countInBatch() {
	done.Add(1)
	batch.Done()
}

func spawnBatch(reps int) []float64 {
	const batches, tasks = 10, 10_000
	return measureTask(reps, batches*tasks, func() time.Duration {
		start := time.Now()
		for n := 0; n < batches; n++ {
			batch.Add(tasks)
			for i := 0; i < tasks; i++ {
				go countInBatch()
			}
			batch.Wait()
		}
		return time.Since(start)
	})
}

func measureYields(reps, tasks, yields int) []float64 {
	yielder := func() {
		n := 0
		for ; n < yields; n++ {
			runtime.Gosched()
		}
		done.Add(int64(n))
		batch.Done()
	}
	return measureTask(reps, int64(tasks*yields), func() time.Duration {
		start := time.Now()
		batch.Add(tasks)
		for i := 0; i < tasks; i++ {
			go yielder()
		}
		batch.Wait()
		return time.Since(start)
	})
}

func yieldInTurn(reps int) []float64 {
	return measureYields(reps, 1000, 1000)
}

func crossWake(reps int) []float64 {
	const rounds = 100_000
	return measureTask(reps, rounds, func() time.Duration {
		ping, pong := make(chan struct{}), make(chan struct{})
		start := time.Now()
		go func() {
			for range ping {
				pong <- struct{}{}
			}
			close(pong)
		}()
		n := 0
		for ; n < rounds; n++ {
			ping <- struct{}{}
			<-pong
		}
		elapsed := time.Since(start)
		close(ping)
		<-pong
		done.Add(int64(n))
		return elapsed
	})
}

// inject spawns from a plain goroutine. Go has nothing outside its runtime: every thread that
// can execute a go statement is a worker. Locking the goroutine to its own thread does not
// change the figure.
func inject(reps int) []float64 {
	const tasks = 100_000
	all := make(chan struct{})
	counter := func() {
		if done.Add(1) == tasks {
			all <- struct{}{}
		}
	}
	return measureTask(reps, tasks, func() time.Duration {
		start := time.Now()
		for i := 0; i < tasks; i++ {
			go counter()
		}
		<-all
		return time.Since(start)
	})
}

// sleepThread puts the calling thread to sleep in the kernel, long enough for every other
// thread to have gone to sleep as well. With time.Sleep, a thread of the runtime would wait for
// the timer instead.
//
// With one worker, a raw system call hides the sleep from the Go scheduler. Otherwise the
// scheduler would hand the worker to another thread meanwhile, and the figure would be the time
// to get it back, several times as long. With more workers, the sleep that the scheduler knows
// about gives the better figure.
func sleepThread() {
	pause := syscall.NsecToTimespec((300 * time.Microsecond).Nanoseconds())
	var err error
	if runtime.GOMAXPROCS(0) > 1 {
		err = syscall.Nanosleep(&pause, nil)
	} else if _, _, code := syscall.RawSyscall(syscall.SYS_NANOSLEEP,
		uintptr(unsafe.Pointer(&pause)), 0, 0); code != 0 {
		err = code
	}
	if err != nil && err != syscall.EINTR {
		fail("nanosleep: %v", err)
	}
}

// wakeOutside wakes from a goroutine that is locked to its own thread, so that the woken
// goroutine must run on another thread, as with the other contenders. An unlocked goroutine
// would just switch to it.
func wakeOutside(reps int) []float64 {
	const samples = 2000
	wake, ranAt := make(chan struct{}), make(chan time.Time)
	go func() {
		for range wake {
			now := time.Now()
			ranAt <- now
		}
	}()
	latency := func() float64 {
		sleepThread()
		wokenAt := time.Now()
		wake <- struct{}{}
		elapsed := (<-ranAt).Sub(wokenAt)
		if elapsed < 0 {
			fail("a goroutine ran before its wake-up")
		}
		return float64(elapsed.Nanoseconds())
	}

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	latencies := make([]float64, samples)
	return measure(reps, func() float64 {
		for i := range latencies {
			latencies[i] = latency()
		}
		sort.Float64s(latencies)
		return latencies[samples/2]
	})
}

func residentBytes() float64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		fail("%v", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if err != nil {
		fail("%v", err)
	}
	return float64(pages * os.Getpagesize())
}

//go:noinline
func touch(state *[32]byte) {
	for i := range state {
		state[i] = 1
	}
	done.Add(1)
}

// idleTask waits forever in the cheapest way, with an empty select. Its state is on its stack.
func idleTask() {
	var state [32]byte
	touch(&state)
	select {}
}

// taskBytes takes one sample, regardless of reps: goroutines that wait forever cannot be ended
// for another repetition.
func taskBytes(_ int) []float64 {
	const warmupTasks, tasks = 1000, 1_000_000
	fill := func(n int64) {
		for i := int64(0); i < n; i++ {
			go idleTask()
		}
		for done.Load() < n {
			runtime.Gosched()
		}
		check(n)
	}
	fill(warmupTasks)
	before := residentBytes()
	fill(tasks)
	bytes := (residentBytes() - before) / tasks
	if idle := runtime.NumGoroutine() - 1; idle != warmupTasks+tasks {
		fail("%d goroutines are idle, not %d", idle, warmupTasks+tasks)
	}
	return []float64{bytes}
}

// cpuTime returns the user and system time of the whole process.
func cpuTime() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		fail("getrusage: %v", err)
	}
	return float64(usage.Utime.Nano() + usage.Stime.Nano())
}

func idleCPU(reps int) []float64 {
	const tasks = 10_000
	batch.Add(tasks)
	for i := 0; i < tasks; i++ {
		go countInBatch()
	}
	batch.Wait()
	check(tasks)
	time.Sleep(100 * time.Millisecond)

	var samples []float64
	for rep := 0; rep < reps; rep++ {
		before := cpuTime()
		time.Sleep(2 * time.Second)
		samples = append(samples, cpuTime()-before)
	}
	return samples
}
