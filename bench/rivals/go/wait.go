// SPDX-License-Identifier: MIT

package main

import (
	"sync"
	"time"
)

// The rows for locks and channels, which include those that blitz-io and volt publish. Where
// goroutines share the work, the time is measured from the first spawn to the last join.

// spawnAll runs task(0) to task(n-1) in separate goroutines, which group waits for.
func spawnAll(group *sync.WaitGroup, n int, task func(i int)) {
	group.Add(n)
	for i := 0; i < n; i++ {
		go func(i int) {
			task(i)
			group.Done()
		}(i)
	}
}

// timeAll measures n goroutines, from the first spawn to the last join.
func timeAll(n int, task func(i int)) time.Duration {
	var group sync.WaitGroup
	start := time.Now()
	spawnAll(&group, n, task)
	group.Wait()
	return time.Since(start)
}

// measureLoop measures one goroutine, whose loop returns the number of correct steps.
func measureLoop(reps int, ops int64, loop func() (right int64)) []float64 {
	return measureTask(reps, ops, func() time.Duration {
		start := time.Now()
		right := loop()
		elapsed := time.Since(start)
		done.Add(right)
		return elapsed
	})
}

// --- channels ----------------------------------------------------------------

// received holds the count and the sum of the messages that a receiver got.
type received struct {
	count int64
	sum   uint64
}

func (r *received) add(message uint64) {
	r.count++
	r.sum += message
}

// checkReceived checks the sum. It leaves checking the count to the row.
func checkReceived(all []received, expected uint64) {
	sum := uint64(0)
	for _, r := range all {
		done.Add(r.count)
		sum += r.sum
	}
	if sum != expected {
		fail("the messages add up to %d, not to %d", sum, expected)
	}
}

// sumBelow returns the sum of the messages 0 to n-1.
func sumBelow(n uint64) uint64 {
	return n * (n - 1) / 2
}

func produce(channel chan<- uint64, first, count uint64) {
	for message := first; message < first+count; message++ {
		channel <- message
	}
}

// consume returns its totals, so that it counts in local variables.
func consume(channel <-chan uint64) received {
	var r received
	for message := range channel {
		r.add(message)
	}
	return r
}

func manyToMany(capacity, producers, consumers, messages int) time.Duration {
	share := uint64(messages / producers)
	all := make([]received, consumers)
	var producing, consuming sync.WaitGroup
	start := time.Now()
	channel := make(chan uint64, capacity)
	spawnAll(&consuming, consumers, func(i int) { all[i] = consume(channel) })
	spawnAll(&producing, producers, func(i int) { produce(channel, uint64(i)*share, share) })
	producing.Wait()
	close(channel)
	consuming.Wait()
	elapsed := time.Since(start)
	checkReceived(all, sumBelow(uint64(messages)))
	return elapsed
}

func measureChannel(reps, capacity, producers, consumers, messages int) []float64 {
	return measureTask(reps, int64(messages), func() time.Duration {
		return manyToMany(capacity, producers, consumers, messages)
	})
}

func chanPingpong(reps int) []float64 {
	const rounds = 100_000
	return measureTask(reps, rounds, func() time.Duration {
		ping, pong := make(chan uint64, 1), make(chan uint64, 1)
		go func() {
			for message := range ping {
				pong <- message + 1
			}
			close(pong)
		}()
		right := int64(0)
		start := time.Now()
		for i := uint64(0); i < rounds; i++ {
			ping <- i
			if <-pong == i+1 {
				right++
			}
		}
		elapsed := time.Since(start)
		close(ping)
		<-pong
		done.Add(right)
		return elapsed
	})
}

func chan11(reps int) []float64 {
	return measureChannel(reps, 1024, 1, 1, 1_000_000)
}

func chan41(reps int) []float64 {
	return measureChannel(reps, 1024, 4, 1, 1_000_000)
}

func chan44(reps int) []float64 {
	return measureChannel(reps, 1024, 4, 4, 1_000_000)
}

// chanOneshot serves as blitz-io's row, too: a receive from a channel that holds a message is
// equivalent to a try.
func chanOneshot(reps int) []float64 {
	const channels = 100_000
	return measureLoop(reps, channels, func() (right int64) {
		for i := uint64(0); i < channels; i++ {
			channel := make(chan uint64, 1)
			channel <- i
			if <-channel == i {
				right++
			}
		}
		return right
	})
}

// A watch holds the latest value. Go has no watch channel, so this is a minimal one. The
// version is meant for waiters, of which this benchmark has none.
type watch struct {
	lock    sync.RWMutex
	value   uint64
	version uint64
}

func (w *watch) set(value uint64) {
	w.lock.Lock()
	w.value = value
	w.version++
	w.lock.Unlock()
}

func (w *watch) get() (value, version uint64) {
	w.lock.RLock()
	value, version = w.value, w.version
	w.lock.RUnlock()
	return value, version
}

func chanWatch(reps int) []float64 {
	const messages = 100_000
	return measureLoop(reps, messages, func() (right int64) {
		var latest watch
		for i := uint64(0); i < messages; i++ {
			latest.set(i)
			if value, version := latest.get(); value == i && version == i+1 {
				right++
			}
		}
		return right
	})
}

// chanBroadcast sends every message to one channel per receiver. After each burst the sender
// waits until all receivers have received it. The receivers need not wait for the sender: they
// find their channels empty.
func chanBroadcast(reps int) []float64 {
	const messages, receivers, burst = 100_000, 4, 512
	endsBurst := func(count int) bool { return count%burst == 0 || count == messages }
	samples := measureTask(reps, messages*receivers, func() time.Duration {
		var channels [receivers]chan uint64
		for i := range channels {
			channels[i] = make(chan uint64, 1024)
		}
		all := make([]received, receivers)
		var receiving, inBurst sync.WaitGroup
		inBurst.Add(receivers)
		start := time.Now()
		spawnAll(&receiving, receivers, func(i int) {
			var r received
			for r.count < messages {
				r.add(<-channels[i])
				if endsBurst(int(r.count)) {
					inBurst.Done()
				}
			}
			all[i] = r
		})
		for message := 0; message < messages; message++ {
			for _, channel := range channels {
				channel <- uint64(message)
			}
			if endsBurst(message + 1) {
				inBurst.Wait()
				inBurst.Add(receivers)
			}
		}
		receiving.Wait()
		elapsed := time.Since(start)
		checkReceived(all, receivers*sumBelow(messages))
		return elapsed
	})
	// One message is received four times but counts once.
	for i := range samples {
		samples[i] *= receivers
	}
	return samples
}

func select2(reps int) []float64 {
	const share = 500_000
	consumeBoth := func(first, second <-chan uint64) received {
		var r received
		for first != nil || second != nil {
			select {
			case message, open := <-first:
				if open {
					r.add(message)
				} else {
					first = nil
				}
			case message, open := <-second:
				if open {
					r.add(message)
				} else {
					second = nil
				}
			}
		}
		return r
	}
	return measureTask(reps, 2*share, func() time.Duration {
		channels := [2]chan uint64{make(chan uint64, 64), make(chan uint64, 64)}
		result := make(chan received)
		var producing sync.WaitGroup
		start := time.Now()
		go func() { result <- consumeBoth(channels[0], channels[1]) }()
		spawnAll(&producing, 2, func(i int) {
			produce(channels[i], uint64(i)*share, share)
			close(channels[i])
		})
		producing.Wait()
		r := <-result
		elapsed := time.Since(start)
		checkReceived([]received{r}, sumBelow(2*share))
		return elapsed
	})
}

// --- locks -------------------------------------------------------------------

func measureMutex(reps, tasks, rounds int) []float64 {
	return measureTask(reps, int64(tasks*rounds), func() time.Duration {
		var guarded struct {
			sync.Mutex
			count int64
		}
		elapsed := timeAll(tasks, func(int) {
			for n := 0; n < rounds; n++ {
				guarded.Lock()
				guarded.count++
				guarded.Unlock()
			}
		})
		done.Add(guarded.count)
		return elapsed
	})
}

func measureRWMutex(reps, rounds int) []float64 {
	const readers, writers = 4, 2
	return measureTask(reps, int64((readers+writers)*rounds), func() time.Duration {
		var guarded struct {
			sync.RWMutex
			count int64
		}
		read := func() {
			reads, latest := int64(0), int64(0)
			for n := 0; n < rounds; n++ {
				guarded.RLock()
				count := guarded.count
				guarded.RUnlock()
				if count >= latest {
					reads++
				}
				latest = count
			}
			done.Add(reads)
		}
		write := func() {
			for n := 0; n < rounds; n++ {
				guarded.Lock()
				guarded.count++
				guarded.Unlock()
			}
		}
		elapsed := timeAll(readers+writers, func(i int) {
			if i < readers {
				read()
			} else {
				write()
			}
		})
		done.Add(guarded.count)
		return elapsed
	})
}

// measureSemaphore uses a buffered channel as the semaphore, the idiomatic way in Go. Two
// goroutines hold a permit at a time, so they count in an atomic.
func measureSemaphore(reps, tasks, rounds int) []float64 {
	return measureTask(reps, int64(tasks*rounds), func() time.Duration {
		semaphore := make(chan struct{}, 2)
		return timeAll(tasks, func(int) {
			for n := 0; n < rounds; n++ {
				semaphore <- struct{}{}
				done.Add(1)
				<-semaphore
			}
		})
	})
}

func syncMutex(reps int) []float64 {
	return measureMutex(reps, 4, 250_000)
}

func syncMutex64(reps int) []float64 {
	return measureMutex(reps, 64, 20_000)
}

func syncRWLock4r2w(reps int) []float64 {
	return measureRWMutex(reps, 50_000)
}

func syncSemaphore82(reps int) []float64 {
	return measureSemaphore(reps, 8, 25_000)
}

func syncNotify(reps int) []float64 {
	const rounds = 100_000
	return measureTask(reps, rounds, func() time.Duration {
		there, back := make(chan struct{}, 1), make(chan struct{}, 1)
		start := time.Now()
		go func() {
			for n := 0; n < rounds; n++ {
				<-there
				back <- struct{}{}
			}
		}()
		n := int64(0)
		for ; n < rounds; n++ {
			there <- struct{}{}
			<-back
		}
		elapsed := time.Since(start)
		done.Add(n)
		return elapsed
	})
}

// A barrier releases its parties when all have arrived. It is reusable.
type barrier struct {
	mutex   sync.Mutex
	all     sync.Cond
	parties int
	waiting int
	round   int
}

func newBarrier(parties int) *barrier {
	b := &barrier{parties: parties}
	b.all.L = &b.mutex
	return b
}

// wait returns true to the last party to arrive.
func (b *barrier) wait() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.waiting++
	if b.waiting == b.parties {
		b.waiting = 0
		b.round++
		b.all.Broadcast()
		return true
	}
	for round := b.round; round == b.round; {
		b.all.Wait()
	}
	return false
}

// syncBarrier lets the last party to arrive count the round.
func syncBarrier(reps int) []float64 {
	const tasks, rounds = 4, 50_000
	return measureTask(reps, rounds, func() time.Duration {
		meeting := newBarrier(tasks)
		return timeAll(tasks, func(int) {
			led := int64(0)
			for n := 0; n < rounds; n++ {
				if meeting.wait() {
					led++
				}
			}
			done.Add(led)
		})
	})
}

// --- blitz-io ----------------------------------------------------------------

const blitzLocks, blitzSends, blitzSpawns = 1_000_000, 100_000, 10_000

func blitzMutex(reps int) []float64 {
	return measureLoop(reps, blitzLocks, func() (right int64) {
		var mutex sync.Mutex
		for n := 0; n < blitzLocks; n++ {
			if mutex.TryLock() {
				right++
				mutex.Unlock()
			}
		}
		return right
	})
}

func blitzRWLockRead(reps int) []float64 {
	return measureLoop(reps, blitzLocks, func() (right int64) {
		var lock sync.RWMutex
		for n := 0; n < blitzLocks; n++ {
			if lock.TryRLock() {
				right++
				lock.RUnlock()
			}
		}
		return right
	})
}

func blitzRWLockWrite(reps int) []float64 {
	return measureLoop(reps, blitzLocks, func() (right int64) {
		var lock sync.RWMutex
		for n := 0; n < blitzLocks; n++ {
			if lock.TryLock() {
				right++
				lock.Unlock()
			}
		}
		return right
	})
}

func blitzSemaphore(reps int) []float64 {
	return measureLoop(reps, blitzLocks, func() (right int64) {
		semaphore := make(chan struct{}, 10)
		for n := 0; n < blitzLocks; n++ {
			select {
			case semaphore <- struct{}{}:
				right++
				<-semaphore
			default:
			}
		}
		return right
	})
}

func blitzOnceCellSet(reps int) []float64 {
	return measureLoop(reps, blitzLocks, func() (right int64) {
		for i := uint64(0); i < blitzLocks; i++ {
			var cell struct {
				sync.Once
				value uint64
			}
			cell.Do(func() { cell.value = i })
			if cell.value == i {
				right++
			}
		}
		return right
	})
}

// trySend returns false if the channel is full.
func trySend(channel chan<- uint64, message uint64) bool {
	select {
	case channel <- message:
		return true
	default:
		return false
	}
}

// tryReceive returns false if the channel is empty.
func tryReceive(channel <-chan uint64) (uint64, bool) {
	select {
	case message := <-channel:
		return message, true
	default:
		return 0, false
	}
}

func blitzChannelSend(reps int) []float64 {
	return measureTask(reps, blitzSends, func() time.Duration {
		channel := make(chan uint64, blitzSends)
		right := int64(0)
		start := time.Now()
		for i := uint64(0); i < blitzSends; i++ {
			if trySend(channel, i) {
				right++
			}
		}
		elapsed := time.Since(start)
		done.Add(right)
		return elapsed
	})
}

func blitzChannelRecv(reps int) []float64 {
	return measureTask(reps, blitzSends, func() time.Duration {
		channel := make(chan uint64, blitzSends)
		produce(channel, 0, blitzSends)
		right := int64(0)
		start := time.Now()
		for i := uint64(0); i < blitzSends; i++ {
			if message, ok := tryReceive(channel); ok && message == i {
				right++
			}
		}
		elapsed := time.Since(start)
		done.Add(right)
		return elapsed
	})
}

func blitzChannelRoundtrip(reps int) []float64 {
	return measureLoop(reps, blitzSends, func() (right int64) {
		channel := make(chan uint64, 1)
		for i := uint64(0); i < blitzSends; i++ {
			sent := trySend(channel, i)
			if message, ok := tryReceive(channel); sent && ok && message == i {
				right++
			}
		}
		return right
	})
}

func blitzChannelMPMC(reps int) []float64 {
	return measureChannel(reps, 1000, 4, 4, 10_000)
}

func blitzMutexContended(reps int) []float64 {
	const tasks, rounds = 4, 2500
	return measureTask(reps, tasks*rounds, func() time.Duration {
		var mutex sync.Mutex
		return timeAll(tasks, func(int) {
			for n := 0; n < rounds; n++ {
				mutex.Lock()
				done.Add(1)
				mutex.Unlock()
			}
		})
	})
}

func blitzRWLockContended(reps int) []float64 {
	return measureRWMutex(reps, 1666)
}

func blitzSemaphoreContended(reps int) []float64 {
	return measureSemaphore(reps, 8, 1250)
}

func blitzTaskSpawn(reps int) []float64 {
	joined := make(chan struct{})
	task := func() { joined <- struct{}{} }
	return measureLoop(reps, blitzSpawns, func() (n int64) {
		for ; n < blitzSpawns; n++ {
			go task()
			<-joined
		}
		return n
	})
}

func blitzTaskSpawnBatch(reps int) []float64 {
	const tasks = 100
	return measureLoop(reps, blitzSpawns, func() (n int64) {
		for n < blitzSpawns {
			batch.Add(tasks)
			for i := 0; i < tasks; i++ {
				go batch.Done()
				n++
			}
			batch.Wait()
		}
		return n
	})
}

// --- volt --------------------------------------------------------------------

func voltYield(reps int) []float64 {
	return measureYields(reps, 2, 100_000)
}

func voltSPSC(reps int) []float64 {
	return measureChannel(reps, 16, 1, 1, 100_000)
}

func voltMPMC1(reps int) []float64 {
	return measureChannel(reps, 64, 1, 1, 200_000)
}

func voltMPMC2(reps int) []float64 {
	return measureChannel(reps, 64, 2, 2, 200_000)
}

func voltMPMC4(reps int) []float64 {
	return measureChannel(reps, 64, 4, 4, 200_000)
}

func mix(hash uint64) uint64 {
	hash ^= hash >> 13
	hash *= 0x100000001b3
	return hash ^ hash>>23
}

func voltPipeline(reps int) []float64 {
	const messages = 50_000
	expected := uint64(0)
	for message := uint64(0); message < messages; message++ {
		expected += mix(message)
	}
	return measureTask(reps, messages, func() time.Duration {
		all := make([]received, 1)
		start := time.Now()
		input, output := make(chan uint64, 64), make(chan uint64, 64)
		var stages sync.WaitGroup
		spawnAll(&stages, 3, func(i int) {
			switch i {
			case 0:
				all[0] = consume(output)
			case 1:
				for message := range input {
					output <- mix(message)
				}
				close(output)
			case 2:
				produce(input, 0, messages)
				close(input)
			}
		})
		stages.Wait()
		elapsed := time.Since(start)
		checkReceived(all, expected)
		return elapsed
	})
}

func voltMutex(reps int) []float64 {
	return measureMutex(reps, 8, 50_000)
}

// voltSpawnHot joins no goroutine: the last one of a batch signals.
func voltSpawnHot(reps int) []float64 {
	const batches, tasks = 20, 1000
	all := make(chan struct{}, 1)
	counter := func() {
		if done.Add(1)%tasks == 0 {
			all <- struct{}{}
		}
	}
	return measureTask(reps, batches*tasks, func() time.Duration {
		start := time.Now()
		for n := 0; n < batches; n++ {
			for i := 0; i < tasks; i++ {
				go counter()
			}
			<-all
		}
		return time.Since(start)
	})
}

func xorshift(x uint64) uint64 {
	for n := 0; n < 50_000; n++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

func voltParallel(reps int) []float64 {
	const tasks = 256
	expected := uint64(0)
	for i := 0; i < tasks; i++ {
		expected ^= xorshift(uint64(i) + 1)
	}
	samples := measureTask(reps, tasks, func() time.Duration {
		results := make([]uint64, tasks)
		elapsed := timeAll(tasks, func(i int) { results[i] = xorshift(uint64(i) + 1) })
		found := uint64(0)
		for _, x := range results {
			found ^= x
		}
		if found != expected {
			fail("the results are %d, not %d", found, expected)
		}
		done.Add(tasks)
		return elapsed
	})
	// The figure is the total of all tasks, in milliseconds.
	for i := range samples {
		samples[i] *= tasks / 1e6
	}
	return samples
}
