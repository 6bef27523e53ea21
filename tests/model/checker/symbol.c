/* SPDX-License-Identifier: MIT */
/*
 * symbol.c - names for addresses of the program.
 *
 * Variables are looked up in the program's symbol table. Lines of code are asked
 * of an addr2line that is started with the first question and stays.
 */
#include "symbol.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static char program[512];
static uintptr_t load_base;

static struct {
    FILE *to;
    FILE *from;
    bool is_tried;
} addr2line;

static struct {
    const char *file;
    size_t size;
    const Elf64_Sym *symbols;
    size_t count;
    const char *names;
    bool is_tried;
} table;

static int find_base(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    load_base = info->dlpi_addr;
    return 1;
}

static void find_program(void)
{
    if (program[0] == '\0') {
        ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
        program[length < 0 ? 0 : length] = '\0';
        (void)dl_iterate_phdr(find_base, NULL);
    }
}

/* --- Code ------------------------------------------------------------------- */

static void start_addr2line(void)
{
    int in[2];
    int out[2];
    addr2line.is_tried = true;
    find_program();
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
        return;
    }
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    char name[] = "addr2line";
    char flags[] = "-fsiae";
    char *arguments[] = { name, flags, program, NULL };
    pid_t child;
    int err = posix_spawnp(&child, "addr2line", &actions, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(in[0]);
    (void)close(out[1]);
    if (err != 0) {
        (void)close(in[1]);
        (void)close(out[0]);
        return;
    }
    addr2line.to = fdopen(in[1], "w");
    addr2line.from = fdopen(out[0], "r");
}

static bool read_line(char *line, size_t size)
{
    if (fgets(line, (int)size, addr2line.from) == NULL) {
        return false;
    }
    line[strcspn(line, " \n")] = '\0';
    return true;
}

/* Each answer begins with the address; then come two lines for the innermost
 * function, and two for each one that it is inlined into. Asking for address 0 as well
 * shows where that ends. */
static bool ask(uintptr_t at, char *text, size_t size)
{
    char function[128];
    char line[256];
    (void)fprintf(addr2line.to, "%#lx\n0\n", (unsigned long)at);
    (void)fflush(addr2line.to);
    size_t length = 0;
    bool is_known = read_line(line, sizeof line);
    for (unsigned depth = 0; is_known; depth++) {
        is_known = read_line(function, sizeof function);
        if (!is_known || strncmp(function, "0x", 2) == 0) {
            break;
        }
        is_known = read_line(line, sizeof line);
        if (is_known && depth < 2 && length < size) {
            length += (size_t)snprintf(text + length, size - length, "%s%s %s",
                                       depth > 0 ? " in " : "", line, function);
        }
    }
    /* What it says of address 0. */
    return is_known && read_line(function, sizeof function) && read_line(line, sizeof line);
}

void mc_symbol_code(const void *pc, char *text, size_t size)
{
    if (!addr2line.is_tried) {
        start_addr2line();
    }
    /* A return address is behind the call. */
    if (addr2line.to == NULL || addr2line.from == NULL ||
        !ask((uintptr_t)pc - 1 - load_base, text, size)) {
        (void)snprintf(text, size, "%p", pc);
    }
}

/* --- Data ------------------------------------------------------------------- */

static void use_section(const Elf64_Ehdr *header, const Elf64_Shdr *sections, size_t index)
{
    const Elf64_Shdr *section = &sections[index];
    if (section->sh_type != SHT_SYMTAB || section->sh_link >= header->e_shnum) {
        return;
    }
    const Elf64_Shdr *names = &sections[section->sh_link];
    if (section->sh_offset + section->sh_size > table.size ||
        names->sh_offset + names->sh_size > table.size) {
        return;
    }
    table.symbols = (const Elf64_Sym *)(const void *)(table.file + section->sh_offset);
    table.count = section->sh_size / sizeof(Elf64_Sym);
    table.names = table.file + names->sh_offset;
}

static void read_table(void)
{
    table.is_tried = true;
    find_program();
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        return;
    }
    table.size = (size_t)status.st_size;
    void *file = mmap(NULL, table.size, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)close(fd);
    if (file == MAP_FAILED) {
        return;
    }
    table.file = file;
    const Elf64_Ehdr *header = file;
    if (header->e_shoff + (size_t)header->e_shnum * sizeof(Elf64_Shdr) > table.size) {
        return;
    }
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(table.file + header->e_shoff);
    for (size_t i = 0; i < header->e_shnum; i++) {
        use_section(header, sections, i);
    }
}

bool mc_symbol_data(uintptr_t addr, char *text, size_t size)
{
    if (!table.is_tried) {
        read_table();
    }
    uintptr_t at = addr - load_base;
    for (size_t i = 0; i < table.count; i++) {
        const Elf64_Sym *symbol = &table.symbols[i];
        if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || at < symbol->st_value ||
            at >= symbol->st_value + symbol->st_size) {
            continue;
        }
        unsigned long offset = at - symbol->st_value;
        const char *name = table.names + symbol->st_name;
        if (offset == 0) {
            (void)snprintf(text, size, "%s", name);
        } else {
            (void)snprintf(text, size, "%s+%#lx", name, offset);
        }
        return true;
    }
    return false;
}
