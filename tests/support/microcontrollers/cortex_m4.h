/* A Cortex-M4 without an operating system, on qemu's board mps2-an386: text and the end go to qemu
   by semihosting. Included by main.c. */
#define IN_ROWS __attribute__((section(".rows")))
#define CLOCK "instructions"

extern uint32_t stack_top[], watched_begin[], watched_end[], data_begin[], data_end[],
    data_in_flash[], bss_begin[], bss_end[];

static void call_host(uint32_t operation, const void *argument) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

static void print(const char *text) { call_host(0x04, text); }

static void end(void) { call_host(0x18, (const void *)0x20026); /* the program has ended well */ }

/* With qemu's -icount shift=0 an instruction takes a nanosecond, and SysTick counts down every 40
 * of them. */
#define NANOSECONDS_PER_TICK 40u
static volatile uint32_t *const systick = (volatile uint32_t *)0xE000E010;

static void start_clock(void) {
  systick[1] = 0x00FFFFFF;
  systick[2] = 0;
  systick[0] = 5;
}

static uint32_t ticks_of_clock(void) { return (0x00FFFFFFu - systick[2]) * NANOSECONDS_PER_TICK; }

#define UNTOUCHED 0xA5A5A5A5u

static uint32_t stack_bytes(void) {
  const uint32_t *word = watched_begin;
  while (*word == UNTOUCHED) word++;
  return (uint32_t)((const char *)stack_top - (const char *)word);
}

int main(void);

void reset(void) {
  uint32_t *word, *from = data_in_flash;
  *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* the floating-point unit is switched on */
  for (word = data_begin; word < data_end;) *word++ = *from++;
  for (word = bss_begin; word < bss_end;) *word++ = 0;
  for (word = watched_begin; word < watched_end;) *word++ = UNTOUCHED;
  main();
  for (;;) {
  }
}

static void fault(void) {
  print("fault\n");
  call_host(0x18, (const void *)0x20023);
  for (;;) {
  }
}

union vector {
  uint32_t *stack;
  void (*handler)(void);
};
__attribute__((section(".vectors"), used)) static const union vector vectors[] = {
    {.stack = stack_top}, {.handler = reset}, {.handler = fault}, {.handler = fault},
    {.handler = fault},   {.handler = fault}, {.handler = fault},
};
