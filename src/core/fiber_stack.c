/* core/fiber_stack.c - stacks and the switch between them.
 *
 * The switch saves what the calling convention calls preserved, and the floating-point control words, on the old stack,
 * changes the stack pointer, and restores the same from the new one. The sanitizers and valgrind are told about every
 * stack and every switch; without them those calls vanish. */
#include "core/fiber_internal.h"
#include "core/mem.h"

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
#ifndef WITH_ASAN
#define WITH_ASAN 0
#endif
#ifndef WITH_TSAN
#define WITH_TSAN 0
#endif

#if WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if WITH_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define WITH_VALGRIND 1
#endif
#endif

#if !defined(FIBER_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define FIBER_UCONTEXT 1
#endif
#ifdef FIBER_UCONTEXT
#include <ucontext.h>
#endif

#define GUARD_BYTES 4096
#if WITH_ASAN || WITH_TSAN
#define STACK_BYTES (4 * FIBER_STACK_BYTES) /* instrumented frames are several times larger */
#else
#define STACK_BYTES FIBER_STACK_BYTES
#endif

struct fiber_stack {
    struct list node;
    void *sp;      /* while it is not running */
    uint8_t *base; /* lowest usable byte; NULL: the loop's own stack */
    size_t size_bytes;
    void (*entry)(void *arg);
    void *arg;
#ifdef FIBER_UCONTEXT
    ucontext_t context;
#endif
#if WITH_ASAN
    void *fake_stack;
    const void *asan_bottom; /* of the loop's stack, learnt at the first switch away */
    size_t asan_size;
    struct fiber_stack *came_from;
#endif
#if WITH_TSAN
    void *tsan_fiber;
#endif
#ifdef WITH_VALGRIND
    unsigned valgrind_id;
#endif
};

/* ---- the switch ---- */

#ifndef FIBER_UCONTEXT
/* Saves the present context, its stack pointer at *save_sp, and resumes the one at sp. */
void fiber_switch_stacks(void **save_sp, void *sp);
/* Where a fresh stack begins: calls the function in one preserved register with the argument in another. */
void fiber_enter(void);
#endif

#ifdef FIBER_UCONTEXT
/* makecontext hands over ints only. */
static void ucontext_entry(unsigned high, unsigned low)
{
    struct fiber_stack *st = (struct fiber_stack *)((uintptr_t)high << 32 | low);

    st->entry(st->arg);
}
#elif defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl fiber_switch_stacks\n"
        ".hidden fiber_switch_stacks\n"
        ".type fiber_switch_stacks, @function\n"
        "fiber_switch_stacks:\n"
        "    .cfi_startproc\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    subq $8, %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movl (%rsp), %eax\n"
        "    movzwl 4(%rsp), %ecx\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    cmpl (%rsp), %eax\n" /* loading control words is slow, and they hardly ever differ */
        "    jne 1f\n"
        "    cmpw 4(%rsp), %cx\n"
        "    jne 1f\n"
        "2:  addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        "1:  ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    jmp 2b\n"
        "    .cfi_endproc\n"
        ".size fiber_switch_stacks, . - fiber_switch_stacks\n"
        ".p2align 4\n"
        ".globl fiber_enter\n"
        ".hidden fiber_enter\n"
        ".type fiber_enter, @function\n"
        "fiber_enter:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n" /* backtraces end here */
        "    movq %r13, %rdi\n"
        "    call *%r12\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size fiber_enter, . - fiber_enter\n");

static void *fresh_frame(uint8_t *top, void (*entry)(void *arg), void *arg)
{
    uintptr_t *frame = (uintptr_t *)(void *)(top - 80);
    uint32_t mxcsr;
    uint16_t fpucw;

    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(fpucw));
    frame[0] = (uintptr_t)mxcsr | (uintptr_t)fpucw << 32;
    frame[1] = 0;                /* r15 */
    frame[2] = 0;                /* r14 */
    frame[3] = (uintptr_t)arg;   /* r13 */
    frame[4] = (uintptr_t)entry; /* r12 */
    frame[5] = 0;                /* rbx */
    frame[6] = 0;                /* rbp: ends the frame-pointer chain */
    frame[7] = (uintptr_t)fiber_enter;
    frame[8] = 0; /* keeps rsp on 16 bytes at the call in fiber_enter */
    frame[9] = 0;
    return frame;
}
#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl fiber_switch_stacks\n"
        ".hidden fiber_switch_stacks\n"
        ".type fiber_switch_stacks, %function\n"
        "fiber_switch_stacks:\n"
        "    sub sp, sp, #176\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mrs x9, fpcr\n"
        "    str x9, [sp, #160]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldr x9, [sp, #160]\n"
        "    msr fpcr, x9\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #176\n"
        "    ret\n"
        ".size fiber_switch_stacks, . - fiber_switch_stacks\n"
        ".p2align 4\n"
        ".globl fiber_enter\n"
        ".hidden fiber_enter\n"
        ".type fiber_enter, %function\n"
        "fiber_enter:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined x30\n"
        "    mov x0, x20\n"
        "    blr x19\n"
        "    brk #1\n"
        "    .cfi_endproc\n"
        ".size fiber_enter, . - fiber_enter\n");

static void *fresh_frame(uint8_t *top, void (*entry)(void *arg), void *arg)
{
    uintptr_t *frame = (uintptr_t *)(void *)(top - 176);
    uintptr_t fpcr;

    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    memset(frame, 0, 176);
    frame[0] = (uintptr_t)entry; /* x19 */
    frame[1] = (uintptr_t)arg;   /* x20 */
    frame[10] = 0;               /* x29: ends the frame-pointer chain */
    frame[11] = (uintptr_t)fiber_enter;
    frame[20] = fpcr;
    return frame;
}
#endif

void stack_switch(struct fiber_stack *from, struct fiber_stack *to, bool is_last)
{
#if WITH_ASAN
    to->came_from = from;
    __sanitizer_start_switch_fiber(is_last ? NULL : &from->fake_stack, to->base ? to->base : to->asan_bottom,
                                   to->base ? to->size_bytes : to->asan_size);
#endif
#if WITH_TSAN
    __tsan_switch_to_fiber(to->tsan_fiber, 0);
#endif
#ifdef FIBER_UCONTEXT
    (void)is_last;
    swapcontext(&from->context, &to->context);
#else
    (void)is_last;
    fiber_switch_stacks(&from->sp, to->sp);
#endif
#if WITH_ASAN
    stack_entered(from);
#endif
}

void stack_entered(struct fiber_stack *st)
{
#if WITH_ASAN
    struct fiber_stack *before = st->came_from;
    __sanitizer_finish_switch_fiber(st->fake_stack, &before->asan_bottom, &before->asan_size);
#else
    (void)st;
#endif
}

void stack_prepare(struct fiber_stack *st, void *arg)
{
    st->arg = arg;
#if WITH_ASAN
    __asan_unpoison_memory_region(st->base, st->size_bytes); /* frames of the last fiber that never returned */
    st->fake_stack = NULL;
#endif
#ifdef FIBER_UCONTEXT
    getcontext(&st->context);
    st->context.uc_stack.ss_sp = st->base;
    st->context.uc_stack.ss_size = st->size_bytes;
    st->context.uc_link = NULL;
    makecontext(&st->context, (void (*)(void))ucontext_entry, 2, (unsigned)((uintptr_t)st >> 32),
                (unsigned)(uintptr_t)st);
#else
    st->sp = fresh_frame(st->base + st->size_bytes, st->entry, arg);
#endif
}

/* ---- memory ---- */

struct fiber_stack *stack_new(void (*entry)(void *arg))
{
    struct fiber_stack *st = NEW(struct fiber_stack);

    if (!st)
        return NULL;
    uint8_t *map = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (map == MAP_FAILED) {
        mem_free(st);
        return NULL;
    }
    if (mprotect(map, GUARD_BYTES, PROT_NONE) < 0) { /* vm.max_map_count is reached: no stack without a guard */
        munmap(map, GUARD_BYTES + STACK_BYTES);
        mem_free(st);
        return NULL;
    }
    st->base = map + GUARD_BYTES;
    st->size_bytes = STACK_BYTES;
    st->entry = entry;
    list_init(&st->node);
#if WITH_TSAN
    st->tsan_fiber = __tsan_create_fiber(0);
#endif
#ifdef WITH_VALGRIND
    st->valgrind_id = VALGRIND_STACK_REGISTER(st->base, st->base + st->size_bytes);
#endif
    return st;
}

struct fiber_stack *stack_new_for_loop(void)
{
    struct fiber_stack *st = NEW(struct fiber_stack);

    if (!st)
        return NULL;
    list_init(&st->node);
#if WITH_TSAN
    st->tsan_fiber = __tsan_get_current_fiber();
#endif
    return st;
}

void stack_free(struct fiber_stack *st)
{
    if (!st)
        return;
    list_del(&st->node);
    if (st->base) {
#if WITH_TSAN
        __tsan_destroy_fiber(st->tsan_fiber);
#endif
#ifdef WITH_VALGRIND
        VALGRIND_STACK_DEREGISTER(st->valgrind_id);
#endif
#if WITH_ASAN
        __asan_unpoison_memory_region(st->base, st->size_bytes);
#endif
        munmap(st->base - GUARD_BYTES, GUARD_BYTES + st->size_bytes);
    }
    mem_free(st);
}

struct list *stack_node(struct fiber_stack *st)
{
    return &st->node;
}

struct fiber_stack *stack_of_node(struct list *node)
{
    return list_entry(node, struct fiber_stack, node);
}
