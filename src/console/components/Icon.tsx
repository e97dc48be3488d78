/** Lines on a grid of 16 × 16, drawn for the console; round ends, 1.5 wide. docs/console-design.md#icons */
const lines = {
  home: "M2.5 7 8 2.5 13.5 7v6a.5.5 0 0 1-.5.5H3a.5.5 0 0 1-.5-.5ZM6.5 13.5v-4h3v4",
  spark: "M8 2l1.5 4.5L14 8l-4.5 1.5L8 14l-1.5-4.5L2 8l4.5-1.5Z",
  cube: "M8 1.8 13.5 5v6L8 14.2 2.5 11V5ZM2.5 5 8 8.2 13.5 5M8 8.2v6",
  key: "M7.6 8.4 13.5 2.5M11 5l2 2M2.5 10.5a3 3 0 1 0 6 0 3 3 0 1 0-6 0",
  list: "M2.5 4l1 1 1.8-2M2.5 11.2l1 1 1.8-2M8 4.2h5.5M8 11.4h5.5",
  arrows: "M3 5h10M10 2l3 3-3 3M13 11H3M6 8l-3 3 3 3",
  bars: "M3 13.5v-4M8 13.5v-11M13 13.5v-7",
  send: "M14 2 7 9M14 2 9.5 14 7 9 2 6.5Z",
  wallet:
    "M12.5 5v-1.5a1 1 0 0 0-1-1H4A1.5 1.5 0 0 0 2.5 4v8.5a1 1 0 0 0 1 1h9a1 1 0 0 0 1-1V6a1 1 0 0 0-1-1h-9M10.7 9.2h.01",
  screen: "M2 3h12v8H2ZM5.5 13.5h5M8 11v2.5",
  page: "M4 2h5.5L12.5 5v9H4ZM6.5 7.5h3.5M6.5 10.5h3.5",
  user: "M8 7.5A2.5 2.5 0 1 0 8 2.5a2.5 2.5 0 1 0 0 5M3 13.5c.4-2.4 2.4-3.5 5-3.5s4.6 1.1 5 3.5",
  server: "M2.5 2.5h11v4.5h-11ZM2.5 9h11v4.5h-11ZM5 4.8h.01M5 11.2h.01",
  tag: "M2.5 2.5H8l5.7 5.7L8.2 13.7 2.5 8ZM5.4 5.4h.01",
  book: "M8 4C6.5 3 4.5 2.7 2.5 3v9.5c2-.3 4 0 5.5 1 1.5-1 3.5-1.3 5.5-1V3c-2-.3-4 0-5.5 1ZM8 4v9.5",
  more: "M3.2 8h.01M8 8h.01M12.8 8h.01",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 1 0 0 9M10.3 10.3 14 14",
  plus: "M8 3v10M3 8h10",
  play: "M5 3.2v9.6L13 8Z",
  pictures: "M2.5 3h11v10h-11ZM5.5 6.3h.01M2.5 11.2 6 8l2.5 2.2 2-1.7 3 2.7",
  check: "M3 8.5l3.5 3.5L13 4.5",
  circle: "M8 14A6 6 0 1 0 8 2a6 6 0 1 0 0 12",
  down: "M4 6l4 4 4-4",
  back: "M10 3.5 5.5 8l4.5 4.5",
  upload: "M8 10V2.5M5 5.2l3-3 3 3M2.5 10.5v2a1 1 0 0 0 1 1h9a1 1 0 0 0 1-1v-2",
  copy: "M5.5 5.5h8v8h-8ZM10.5 5.5v-3h-8v8h3",
  filter: "M2.5 4h11M4.5 8h7M6.5 12h3"
} as const

export type IconName = keyof typeof lines

/** A picture beside a word, or alone in a button that has a name. */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    <path d={lines[name]} />
  </svg>
)

/** The mark of the product: a gate. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <rect width="24" height="24" rx="6" />
    <path d="M6.5 18v-6a5.5 5.5 0 0 1 11 0v6M12 18v-5.5" />
  </svg>
)
