# SPDX-License-Identifier: MIT
"""
weft-gdb.py - gdb commands for weft's fibers, in a process or a core file.

    (gdb) source weft-gdb.py
    (gdb) help weft

Everything is read from memory: no function of the program is called and no register is written,
so it also works with a core file.

Debug information describes the structures and fields of weft. Beyond their names, this script
knows the bits of a task's state word (sched/state.h), that a fiber is a task whose operations
are of the kind "fiber" (sched/fiber.c), and how a stack's size and top follow from its class
and its color (fiber/stack.h). tests/scripts/gdb.sh detects a change in one of these.

How a suspended fiber is unwound: its sp, bp and pc are in its context; all other registers are
in its frames (fiber/context.h). FiberUnwinder reports these three to gdb as the registers of
the caller of some thread's innermost frame. Everything that gdb can do with frames then works
on the fiber's frames, which follow that innermost one.
"""

import os
import re
import struct
from contextlib import contextmanager
from functools import cached_property

import gdb
import gdb.unwinder

# sched/state.h
REFERENCES_MASK = 0xFFFFFFFF
CANCELLED = 1 << 41
LIFECYCLE_SHIFT = 48
LIFECYCLE_MASK = 0xFF
IDLE, RUNNING, COMPLETE, QUEUED = range(4)  # QUEUED is not a real state, but RUNNING.
YIELDED = -(2**31) + 1

# fiber/context.h: names of sp, bp and pc, by the prefix of gdb's architecture.
REGISTERS = {
    "i386:x86-64": ("rsp", "rbp", "rip"),
    "aarch64": ("sp", "x29", "pc"),
}
RED_ZONE = 128

SLOT_GRAIN = 64
SLOT_SIZE_MAX = 1024
NAME_CHARACTERS_MAX = 60
FRAMES_BYTES = 4096
SIGNAL_FRAMES_MAX = 64  # between a signal handler and the interrupted code

NO_PROCESS = "There is no process: run the program, attach to it, or open a core file."
NO_WEFT = "This program has no weft in it, or has not loaded it yet, or is stripped of all symbols."
NO_DEBUG_INFO = (
    "weft is here, but without debug information. Install its debug symbols (on Debian the "
    "-dbgsym package of the library), or build weft with -g and do not strip it."
)
NO_RUNTIME = "There is no runtime: none was created yet, or all were destroyed."
NO_STACK_IN_CORE = "its stack is not in this core file"
WHY_NO_STACK = (
    "gdb's generate-core-file leaves out the stacks of fibers on Linux 6.13 and later. Cores "
    "of the kernel have them, and those of weft gcore."
)


# --- Values ------------------------------------------------------------------


def type_of(name, near=None):
    """Returns the structure with this name. With near, the one that this function sees, since a
    name that is private to one file may exist elsewhere, too."""
    symbol = gdb.lookup_global_symbol(near) if near else None
    if symbol is not None:
        return gdb.lookup_type("struct " + name, symbol.symtab.static_block())
    return gdb.lookup_type("struct " + name)


def offset_of(structure, member):
    return structure[member].bitpos // 8


def at(address, structure):
    """Reads the structure at an address eagerly, so that a memory error is raised here."""
    value = gdb.Value(address).cast(structure.pointer()).dereference()
    value.fetch_lazy()
    return value


def enumerator(name, default):
    """Returns a constant of an enum; compilers may omit unused ones."""
    symbol = gdb.lookup_static_symbol(name)
    return default if symbol is None else int(symbol.value())


def text_at(pointer):
    """Returns the string at a pointer, or "" for NULL. Never fails: gdb puts an error into the
    text."""
    if int(pointer) == 0:
        return ""
    text = pointer.format_string(max_elements=NAME_CHARACTERS_MAX, address=False)
    return text[1:-1] if text.startswith('"') and text.endswith('"') else text


def function_name(address):
    """Returns the name of the function at an address, or the address."""
    try:
        block = gdb.block_for_pc(address)
        while block is not None and block.function is None:
            block = block.superblock
        if block is not None:
            return block.function.name
        symbol = gdb.execute(f"info symbol {address:#x}", to_string=True)
    except (gdb.error, RuntimeError):
        symbol = ""
    return f"{address:#x}" if not symbol or symbol.startswith("No symbol") else symbol.split()[0]


def file_of_function(address):
    try:
        return os.path.basename(gdb.find_pc_line(address).symtab.filename)
    except (gdb.error, AttributeError):
        return "?"


# --- weft's structures in memory ----------------------------------------------


class Walk:
    """Walks lists that may be corrupt; records problems instead of stopping."""

    def __init__(self):
        self.problems = []

    @contextmanager
    def survive(self, what):
        """Continues after the block if there is an error in it."""
        try:
            yield
        except gdb.error as error:  # includes gdb.MemoryError
            self.problems.append(f"{what}: {error}")

    def follow(self, first, end, next_of, what):
        """Yields every address of a linked list, up to a bad pointer or a cycle."""
        seen = set()
        address = first
        while address != end:
            if address in seen:
                self.problems.append(f"{what}: it goes round in a circle at {address:#x}")
                return
            seen.add(address)
            following = None
            with self.survive(what):
                following = next_of(address)
            if following is None:
                return
            yield address
            address = following

    def report(self):
        for problem in self.problems:
            print(f"warning: {problem}")
        if self.problems:
            print("warning: memory is corrupt, so tasks may be missing here")


def find_lists():
    """Returns the variables wf_runtimes, one for each copy of weft in the program."""
    if gdb.selected_thread() is None:
        raise gdb.GdbError(NO_PROCESS)
    lists = [symbol.value() for symbol in gdb.lookup_static_symbols("wf_runtimes")]
    lists = [value for value in lists if value.address is not None]  # otherwise only declared
    if lists:
        return lists
    try:
        gdb.parse_and_eval("(char *)&weft_runtime_create")
    except gdb.error:
        raise gdb.GdbError(NO_WEFT) from None
    raise gdb.GdbError(NO_DEBUG_INFO)


def runtimes(walk):
    found = False
    structure = type_of("weft_runtime")
    links = type_of("wf_list")
    for value in find_lists():
        head, first = int(value.address), int(value["next"])
        for link in walk.follow(first, head, lambda a: int(at(a, links)["next"]), "the runtimes"):
            found = True
            with walk.survive(f"the runtime at {link:#x}"):
                yield Runtime(walk, link - offset_of(structure, "link"))
    if not found and not walk.problems:
        raise gdb.GdbError(NO_RUNTIME)


class Worker:
    def __init__(self, value):
        self.index = int(value["index"])
        self.current = int(value["current"])
        self.left = int(value["left"])


class Runtime:
    def __init__(self, walk, address):
        self.address = address
        self.sched = at(int(at(address, type_of("weft_runtime"))["sched"]), type_of("wf_sched"))
        self.worker_count = int(self.sched["options"]["workers"])
        self.workers = []
        structure = type_of("wf_worker")
        first = int(self.sched["workers"])
        with walk.survive("the workers"):
            for i in range(self.worker_count):
                self.workers.append(Worker(at(first + i * structure.sizeof, structure)))

    def __str__(self):
        plural = "s" if self.worker_count != 1 else ""
        return f"Runtime {self.address:#x}, {self.worker_count} worker{plural}"

    def tasks(self, walk):
        """Yields every live task, like wf_heap_visit() in sched/heap.c."""
        for address in self.task_addresses(walk):
            with walk.survive(f"the task at {address:#x}"):
                yield Task(self, address)

    def task_addresses(self, walk):
        heap = int(self.sched["heap"])
        with walk.survive(f"the heap at {heap:#x}"):
            slabs = heap + offset_of(type_of("wf_heap"), "slabs")
            size = type_of("wf_slab").sizeof
            for i in range(self.worker_count + 1):
                yield from self.tasks_of_slab(walk, slabs + i * size, f"slab {i}")
            yield from self.large_tasks(walk, heap)

    def tasks_of_slab(self, walk, address, what):
        structure = type_of("wf_chunk", near="wf_heap_create")
        first = None
        with walk.survive(what):
            first = int(at(address, type_of("wf_slab"))["chunks"])
        if first is None:
            return
        for chunk in walk.follow(first, 0, lambda a: int(at(a, structure)["next"]), what):
            with walk.survive(f"{what}, the chunk at {chunk:#x}"):
                yield from self.tasks_of_chunk(chunk, structure)

    def tasks_of_chunk(self, chunk, structure):
        value = at(chunk, structure)
        size, carved, count = (int(value[m]) for m in ("slot_size", "carved", "slot_count"))
        if size == 0 or size % SLOT_GRAIN or size > SLOT_SIZE_MAX or carved > count:
            raise gdb.error(f"it is corrupt: {carved} of {count} slots of {size} bytes")
        slots = chunk + offset_of(structure, "slots")
        if carved == 0:
            return
        memory = bytes(gdb.selected_inferior().read_memory(slots, carved * size))
        word = offset_of(type_of("wf_task"), "state")
        for slot in range(0, carved * size, size):
            if is_alive(struct.unpack_from("=Q", memory, slot + word)[0]):
                yield slots + slot

    def large_tasks(self, walk, heap):
        """Yields the tasks that are too large for a slab; each is preceded by a list link."""
        links = type_of("wf_list")
        large = type_of("large", near="wf_heap_create")
        head = heap + offset_of(type_of("wf_heap"), "large")
        what = "the list of large tasks"
        first = int(at(head, links)["next"])
        for link in walk.follow(first, head, lambda a: int(at(a, links)["next"]), what):
            with walk.survive(what):
                address = link - offset_of(large, "link")
                is_marker = int(at(address, large)["bytes"]) == 0
                task = address + large.sizeof
                if not is_marker and is_alive(int(at(task, type_of("wf_task"))["state"])):
                    yield task


def is_alive(state):
    lifecycle = state >> LIFECYCLE_SHIFT & LIFECYCLE_MASK
    return state & REFERENCES_MASK != 0 and lifecycle != COMPLETE


class Task:
    def __init__(self, runtime, address):
        self.runtime = runtime
        self.address = address
        value = at(address, type_of("wf_task"))
        self.ops = value["ops"]
        self.id = int(value["id"])
        self.name = text_at(value["name"])  # may be ""
        state = int(value["state"])
        self.lifecycle = state >> LIFECYCLE_SHIFT & LIFECYCLE_MASK
        if self.lifecycle == RUNNING and int(value["result"]) == YIELDED:
            self.lifecycle = QUEUED
        self.is_cancelled = state & CANCELLED != 0
        try:
            self.kind = text_at(self.ops["kind"])
        except gdb.MemoryError as error:
            self.kind = f"corrupt ({error})"

    @property
    def is_fiber(self):
        return self.kind == "fiber"

    @property
    def is_corrupt(self):
        return re.fullmatch(r"[a-z ]{1,20}", self.kind) is None

    @property
    def title(self):
        name = f' "{self.name}"' if self.name else ""
        return f"{self.id}{name} ({self.address:#x})"

    def state(self, thread=None):
        """Returns the state as text. The thread, if known, is the one that runs the task."""
        text = {IDLE: "suspended", QUEUED: "queued", RUNNING: self.running(thread)}
        cancelled = ", cancelled" if self.is_cancelled else ""
        return text.get(self.lifecycle, f"corrupt ({self.lifecycle})") + cancelled

    def running(self, thread):
        for worker in self.runtime.workers:
            if worker.current == self.address:
                return f"running on worker {worker.index}"
            if worker.left == self.address:
                return f"leaving worker {worker.index}"
        # Not on a worker: a blocking job, or a fiber in weft_block_in_place().
        return f"running on thread {thread.num}" if thread else "running"

    def where(self):
        """Returns the current position of a task without a stack."""
        try:
            if self.kind == "task":
                return self.where_stackless()
            if self.kind == "blocking":
                job = at(self.address, type_of("job", near="wf_pool_spawn"))
                return function_name(int(job["function"]))
        except gdb.error as error:
            return str(error)
        return ""

    def where_stackless(self):
        """WEFT_AWAIT() stores its line number."""
        value = at(self.address, type_of("stackless", near="wf_spawn"))
        body, line = int(value["body"]), int(value["co"]["resume"])
        name = function_name(body)
        return f"{name} at {file_of_function(body)}:{line}" if line else f"{name}, not begun"


class Fiber:
    """A task with a stack. sp, bp and pc are those of its last suspension."""

    def __init__(self, task):
        self.task = task
        value = at(task.address, type_of("wf_fiber"))
        self.function = int(value["function"])
        if task.lifecycle == RUNNING and int(value["lent_to"]) != 0:
            task.lifecycle = IDLE  # It has handed its worker to the task that it joins.
        context = value["context"]
        self.registers = tuple(int(context[name]) for name in ("sp", "bp", "pc"))
        self.has_stack = False
        self.no_stack = "not begun"
        if int(value["stack"]) != 0:
            self.read_stack(int(value["stack"]))

    def read_stack(self, address):
        try:
            stack = at(address, type_of("wf_stack"))
        except gdb.MemoryError as error:
            self.no_stack = f"its stack is unknown: {error}"
            return
        self.low = int(stack["low"])
        self.size = enumerator("WF_STACK_MIN", 16 * 1024) << int(stack["class"])
        self.top = self.low + self.size - int(stack["color"]) * 64
        self.has_stack = True

    @property
    def sp(self):
        return self.registers[0]

    @property
    def is_running(self):
        return self.task.lifecycle == RUNNING

    def holds(self, sp):
        """Returns whether this is a stack pointer of this fiber. Includes the guard below the
        stack, where it points after an overflow."""
        if not self.has_stack:
            return False
        guard_min = enumerator("WF_STACK_GUARD_MIN", 64 * 1024)
        guard_max = enumerator("WF_STACK_GUARD_MAX", 1024 * 1024)
        guard = min(max(self.size, guard_min), guard_max)
        return self.low - guard <= sp <= self.top

    def use(self, sp):
        if not self.has_stack or not self.holds(sp):
            return "-"
        overflow = " overflow" if sp < self.low else ""
        return f"{self.top - sp} of {self.size // 1024}K{overflow}"

    @cached_property
    def problem(self):
        """The reason why there is nothing to unwind, or ""."""
        if not self.has_stack:
            return self.no_stack
        if self.registers[2] == symbol_address("wf_context_entry"):
            return "not begun"
        if not self.holds(self.sp):
            span = f"{self.low:#x} to {self.top:#x}"
            return f"its saved stack pointer {self.sp:#x} is not in its stack, {span}"
        try:
            # The innermost frames contain at least one return address.
            size = min(self.top - self.sp, FRAMES_BYTES)
            stack = gdb.selected_inferior().read_memory(self.sp, size)
        except gdb.MemoryError as error:
            return str(error)
        return "" if any(bytes(stack)) else NO_STACK_IN_CORE


def symbol_address(name):
    try:
        return int(gdb.parse_and_eval(f"(char *)&{name}"))
    except gdb.error:
        return None


# --- Frames ------------------------------------------------------------------


def registers_of(architecture):
    for name, registers in REGISTERS.items():
        if architecture.name().startswith(name):
            return registers
    raise gdb.GdbError(f"weft-gdb.py knows no registers of {architecture.name()}.")


class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class FiberUnwinder(gdb.unwinder.Unwinder):
    """While enabled, makes a suspended fiber the caller of the thread's innermost frame."""

    def __init__(self):
        super().__init__("weft-fiber")
        self.enabled = False
        self.thread_at = None  # sp and pc of the innermost frame
        self.fiber_at = None  # sp, bp and pc of the fiber

    def __call__(self, pending):
        names = registers_of(pending.architecture())
        pointer = gdb.lookup_type("void").pointer()
        # gdb asks once for each frame. Inlined frames at the innermost position come first and
        # do not get here, so the level may not be 0.
        if tuple(int(pending.read_register(names[i])) for i in (0, 2)) != self.thread_at:
            return None
        sp, bp, pc = (gdb.Value(value).cast(pointer) for value in self.fiber_at)
        # The id has the fiber's sp: gdb may take frames that do not grow outwards for a corrupt
        # stack, and the fiber's stack may be anywhere relative to the thread's.
        info = pending.create_unwind_info(FrameId(sp, gdb.Value(self.thread_at[1]).cast(pointer)))
        for name, value in zip(names, (sp, bp, pc)):
            info.add_saved_register(name, value)
        return info


unwinder = FiberUnwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)


@contextmanager
def parameter(name, value, word_of):
    """Changes a setting of gdb temporarily; word_of() converts the old value back to text."""
    before = gdb.parameter(name)
    gdb.execute(f"set {name} {value}", to_string=True)
    try:
        yield before
    finally:
        gdb.execute(f"set {name} {word_of(before)}", to_string=True)


def switch_word(is_on):
    return "on" if is_on else "off"


def count_word(count):
    return "unlimited" if count is None else count


@contextmanager
def selection_kept():
    """Restores the user's selected thread and frame at the end."""
    thread = gdb.selected_thread()
    try:
        level = gdb.selected_frame().level()
    except gdb.error:
        level = 0
    try:
        # Otherwise the unwinder could not leave main(), if the thread is in it.
        with parameter("backtrace past-main", "on", switch_word):
            yield
    finally:
        thread.switch()
        if thread.is_stopped():
            frame = gdb.newest_frame()
            while frame is not None and frame.level() < level:
                frame = frame.older()
            if frame is not None:
                frame.select()


def select_stopped_thread():
    """Selects a stopped thread; a fiber can be unwound from any."""
    if gdb.selected_thread().is_stopped():
        return
    for thread in gdb.selected_inferior().threads():
        if thread.is_stopped():
            thread.switch()
            return
    raise gdb.GdbError("Every thread is running: interrupt the program first.")


@contextmanager
def unwound(fiber):
    """Makes the frames of a suspended fiber follow those of a thread. Yields the innermost one.
    Only inside selection_kept()."""
    select_stopped_thread()
    frame = gdb.newest_frame()
    names = registers_of(frame.architecture())
    unwinder.thread_at = tuple(int(frame.read_register(names[i])) for i in (0, 2))
    unwinder.fiber_at = fiber.registers
    unwinder.enabled = True
    gdb.invalidate_cached_frames()
    try:
        # The limit counts from the thread's innermost frame.
        with parameter("backtrace limit", "unlimited", count_word):
            frame = gdb.newest_frame()
            while frame.type() == gdb.INLINE_FRAME:
                frame = frame.older()
            yield frame.older()
    finally:
        unwinder.enabled = False
        gdb.invalidate_cached_frames()


class Threads:
    """Maps stacks to the threads that run on them. Only inside selection_kept()."""

    def __init__(self):
        self.stack_pointers = None
        self.some_run = False  # in gdb's non-stop mode

    def look(self):
        self.stack_pointers = []
        for thread in gdb.selected_inferior().threads():
            if thread.is_stopped():
                thread.switch()
                self.stack_pointers.append((thread, stack_pointer(gdb.newest_frame())))
            else:
                self.some_run = True

    def find(self, fiber):
        """Returns the thread that runs on the fiber's stack and its sp there, or None and the
        fiber's own sp. A signal handler may have its own stack; its frames lead to the
        fiber's."""
        if not fiber.is_running:
            return None, fiber.sp
        if self.stack_pointers is None:
            self.look()
        for thread, sp in self.stack_pointers:
            if fiber.holds(sp):
                return thread, sp
        for thread, _ in self.stack_pointers:
            thread.switch()
            frame = gdb.newest_frame()
            while frame is not None and frame.level() < SIGNAL_FRAMES_MAX:
                if fiber.holds(stack_pointer(frame)):
                    return thread, stack_pointer(frame)
                frame = frame.older()
        return None, fiber.sp

    def problem(self, fiber):
        """Returns why a fiber without a thread, according to find(), cannot be unwound, or ""."""
        if fiber.is_running and self.some_run:
            return "its thread is not stopped"
        return fiber.problem


def stack_pointer(frame):
    return int(frame.read_register(registers_of(frame.architecture())[0]))


class Places:
    """Distinguishes weft's own frames from the user's: by name, and by the folder of the file
    that defines the list of runtimes."""

    def __init__(self):
        home = "rt/runtime.c"
        paths = [s.symtab.fullname() for s in gdb.lookup_static_symbols("wf_runtimes")]
        self.folders = tuple(path[: -len(home)] for path in paths if path.endswith(home))
        self.known = {}

    def is_weft(self, frame):
        """Includes the caller of a signal handler: weft has one for stack overflows."""
        if frame.type() == gdb.SIGTRAMP_FRAME:
            return True
        if (frame.name() or "").startswith(("wf_", "weft_")):
            return True
        # Uses the file of the line: with link-time optimization the function's file is wrong.
        symtab = frame.find_sal().symtab
        if symtab is None:
            return False
        if symtab.filename not in self.known:
            self.known[symtab.filename] = symtab.fullname().startswith(self.folders)
        return self.known[symtab.filename]

    def describe(self, frame):
        """Returns the user's innermost frame, and the weft function that it has called."""
        call = None
        innermost = frame
        while frame is not None and self.is_weft(frame):
            if (frame.name() or "").startswith("weft_"):
                call = frame.name()
            frame = frame.older()
        waits = f"in {call}" if call else ""
        if frame is None:  # it starts or ends, or a tail call has replaced its frame
            return waits or innermost.name()
        place = frame.find_sal()
        name = frame.name() or f"{frame.pc():#x}"
        if place.symtab is not None:
            name += f" at {os.path.basename(place.symtab.filename)}:{place.line}"
        return ", ".join(filter(None, (name, waits)))


def where(fiber, thread, places):
    """Returns the position of a fiber without a problem. Only inside selection_kept()."""
    try:
        if thread is not None:
            thread.switch()
            return places.describe(gdb.newest_frame())
        with unwound(fiber) as frame:
            return places.describe(frame) if frame is not None else "?"
    except gdb.error as error:
        return f"? ({error})"


def fiber_backtrace(fiber, options):
    """Returns gdb's backtrace without the frames before the fiber's, numbered from 0."""
    limit = gdb.parameter("backtrace limit")
    with unwound(fiber) as frame:
        if frame is None:
            return "No frame can be unwound.\n"
        first = frame.level()
        count = "" if limit is None else limit + first
        text = gdb.execute(f"backtrace {options} {count}", to_string=True)

    def renumber(match):
        number = f"#{int(match[1]) - first}"
        return number.ljust(len(match[0]))

    begin = re.search(rf"^#{first} ", text, re.MULTILINE)
    text = text[begin.start():] if begin else text
    return re.sub(r"^#(\d+) +", renumber, text, flags=re.MULTILINE)


# --- Commands ----------------------------------------------------------------


def print_row(widths, cells):
    print("  ".join((cell or "-").ljust(width) for cell, width in zip(cells, widths)).rstrip())


def print_fiber_backtrace(task, options):
    fiber = Fiber(task)
    with selection_kept():
        threads = Threads()
        thread, sp = threads.find(fiber)
        problem = "" if thread is not None else threads.problem(fiber)
        use = "-" if problem else fiber.use(sp)
        function = function_name(fiber.function)
        print(f"Fiber {task.title}, {function}, {task.state(thread)}, stack {use}:")
        if thread is not None:
            thread.switch()
            name = f' "{thread.name}"' if thread.name else ""  # a core file has none
            print(f"Thread {thread.num}{name} (LWP {thread.ptid[1]}) is on its stack.")
            print(gdb.execute(f"backtrace {options}", to_string=True), end="")
        elif problem:
            print(f"No backtrace: {problem}.")
            if problem == NO_STACK_IN_CORE:
                print(WHY_NO_STACK)
        else:
            print(fiber_backtrace(fiber, options), end="")


def find_task(walk, word):
    """Returns the task with this id or at this address."""
    tasks = [task for runtime in runtimes(walk) for task in runtime.tasks(walk)]
    if re.fullmatch(r"\d+", word):
        what = f"No task has the id {word}"
        found = [task for task in tasks if task.id == int(word)]
    else:
        address = int(gdb.parse_and_eval(word))
        what = f"There is no task at {address:#x}"
        found = [task for task in tasks if task.address == address]
    if not found:
        walk.report()
        raise gdb.GdbError(f"{what}. It may have ended; weft tasks lists those that are alive.")
    if len(found) > 1:
        titles = "\n".join(f"  {task.title}" for task in found)
        raise gdb.GdbError(f"Several runtimes have a task {word}; name its address:\n{titles}")
    return found[0]


class WeftCommand(gdb.Command):
    """Commands for weft's tasks and fibers.

weft fibers            lists all fibers
weft bt ID|ADDRESS     prints the frames of one fiber
weft tasks             lists all tasks, including those without a stack
weft gcore [FILE]      generate-core-file, with the stacks of fibers"""

    def __init__(self):
        super().__init__("weft", gdb.COMMAND_STACK, prefix=True)


class Command(gdb.Command):
    """Common part of the commands: reports an error as a sentence, not as a traceback."""

    def invoke(self, argument, from_tty):
        try:
            find_lists()
            self.run(argument)
        except (gdb.error, OSError) as error:
            raise gdb.GdbError(str(error)) from None


class FibersCommand(Command):
    """Lists the fibers of every runtime.

Stack is the part of the fiber's stack that is in use. Where is the innermost frame
outside of weft, and the weft function that it waits in. To filter:
| weft fibers | grep ..."""

    WIDTHS = (6, 14, 19, 14, 16, 0)

    def __init__(self):
        super().__init__("weft fibers", gdb.COMMAND_STACK)

    def run(self, argument):
        walk, places, threads = Walk(), Places(), Threads()
        has_holes = False
        with selection_kept():
            for runtime in runtimes(walk):
                print(runtime)
                print_row(self.WIDTHS, ("Id", "Name", "State", "Stack", "Function", "Where"))
                for task in runtime.tasks(walk):
                    with walk.survive(f"the task at {task.address:#x}"):
                        if task.is_fiber or task.is_corrupt:
                            cells = self.cells(task, places, threads)
                            print_row(self.WIDTHS, cells)
                            has_holes = has_holes or cells[-1] == NO_STACK_IN_CORE
        if has_holes:
            print(WHY_NO_STACK)
        walk.report()

    @staticmethod
    def cells(task, places, threads):
        if task.is_corrupt:
            kind = f"{task.address:#x} {task.kind}"
            return str(task.id), task.name, task.state(), "-", "-", kind
        fiber = Fiber(task)
        thread, sp = threads.find(fiber)
        problem = "" if thread is not None else threads.problem(fiber)
        use = "-" if problem else fiber.use(sp)
        place = problem or where(fiber, thread, places)
        state = task.state(thread)
        return str(task.id), task.name, state, use, function_name(fiber.function), place


class BacktraceCommand(Command):
    """Prints the frames of a fiber: weft bt ID|ADDRESS|all [OPTION...]

An id is the number that weft fibers shows. An address may be any expression, such
as a weft_task pointer; quote it if it has spaces. Options are those of backtrace,
such as -full. The frames of a running fiber are those of its thread."""

    def __init__(self):
        super().__init__("weft bt", gdb.COMMAND_STACK)

    def run(self, argument):
        words = gdb.string_to_argv(argument)
        if not words or words[0].startswith("-"):
            raise gdb.GdbError("Which fiber? weft bt ID|ADDRESS|all; weft fibers lists them.")
        walk = Walk()
        options = " ".join(words[1:])
        if words[0] == "all":
            self.print_all(walk, options)
            return
        task = find_task(walk, words[0])
        if task.is_fiber:
            print_fiber_backtrace(task, options)
        else:
            print(f"Task {task.title} is no fiber and has no stack of its own: {task.kind}, "
                  f"{task.state()}, {task.where() or 'nothing more is known'}.")

    @staticmethod
    def print_all(walk, options):
        for runtime in runtimes(walk):
            for task in runtime.tasks(walk):
                if task.is_fiber:
                    with walk.survive(f"the task at {task.address:#x}"):
                        print_fiber_backtrace(task, options)
                        print()
        walk.report()


class TasksCommand(Command):
    """Lists the tasks of every runtime: fibers, stackless tasks and blocking jobs."""

    WIDTHS = (6, 8, 14, 19, 0)

    def __init__(self):
        super().__init__("weft tasks", gdb.COMMAND_STACK)

    def run(self, argument):
        walk = Walk()
        for runtime in runtimes(walk):
            print(runtime)
            print_row(self.WIDTHS, ("Id", "Kind", "Name", "State", "Function"))
            for task in runtime.tasks(walk):
                with walk.survive(f"the task at {task.address:#x}"):
                    place = function_name(Fiber(task).function) if task.is_fiber else task.where()
                    cells = (str(task.id), task.kind, task.name, task.state(), place)
                    print_row(self.WIDTHS, cells)
        walk.report()


class CoreCommand(Command):
    """Writes a core file: weft gcore [FILE]

Like generate-core-file, with the stacks of fibers. generate-core-file stops reading a
mapping at the first unreadable page, and since Linux 6.13 the guard pages of stacks are
inside their mapping. So the stacks of fibers are added afterwards."""

    def __init__(self):
        super().__init__("weft gcore", gdb.COMMAND_FILES, gdb.COMPLETE_FILENAME)

    def run(self, argument):
        walk, threads = Walk(), Threads()
        ranges = []
        with selection_kept():
            for runtime in runtimes(walk):
                for task in runtime.tasks(walk):
                    with walk.survive(f"the task at {task.address:#x}"):
                        fiber = Fiber(task) if task.is_fiber else None
                        if fiber is not None and fiber.has_stack:
                            _, sp = threads.find(fiber)
                            ranges.append((max(fiber.low, sp - RED_ZONE), fiber.top))
        path = argument or f"core.{gdb.selected_inferior().pid}"
        gdb.execute(f"generate-core-file {path}")
        with open(os.path.expanduser(path), "r+b") as core:
            segments = load_segments(core)
            filled = sum(self.fill(walk, core, segments, *bounds) for bounds in ranges)
        print(f"Added the stacks of {filled} fiber{'s' if filled != 1 else ''}.")
        walk.report()

    @staticmethod
    def fill(walk, core, segments, low, top):
        with walk.survive(f"the stack at {low:#x}"):
            memory = gdb.selected_inferior().read_memory(low, top - low)
            for offset, address, size in segments:
                if address <= low and top <= address + size:
                    core.seek(offset + low - address)
                    core.write(memory)
                    return True
        return False


def load_segments(core):
    """Returns the file offset, address and file size of each loaded segment of a 64-bit ELF
    file."""
    header = core.read(64)
    order = "<" if header[5] == 1 else ">"
    (table,) = struct.unpack_from(order + "Q", header, 32)
    entry_size, count = struct.unpack_from(order + "HH", header, 54)
    segments = []
    for i in range(count):
        core.seek(table + i * entry_size)
        kind, _, offset, address, _, size = struct.unpack(order + "IIQQQQ", core.read(40))
        if kind == 1:  # PT_LOAD
            segments.append((offset, address, size))
    return segments


WeftCommand()
FibersCommand()
BacktraceCommand()
TasksCommand()
CoreCommand()
