import {
  ArrowLeftRight,
  BookOpen,
  Box,
  ChartColumn,
  Check,
  ChevronDown,
  ChevronLeft,
  Circle,
  Copy,
  Ellipsis,
  FileText,
  House,
  Images,
  KeyRound,
  ListFilter,
  ListTodo,
  Menu,
  Monitor,
  Play,
  Search,
  Send,
  Server,
  Sparkles,
  Tag,
  Upload,
  User,
  Wallet
} from "lucide"
import { h } from "preact"

/** Lucide icons, inlined by the build. docs/console-design.md#mark-and-icons */
const icons = {
  home: House,
  spark: Sparkles,
  cube: Box,
  key: KeyRound,
  list: ListTodo,
  arrows: ArrowLeftRight,
  bars: ChartColumn,
  send: Send,
  wallet: Wallet,
  screen: Monitor,
  page: FileText,
  user: User,
  server: Server,
  tag: Tag,
  book: BookOpen,
  more: Ellipsis,
  menu: Menu,
  search: Search,
  play: Play,
  pictures: Images,
  check: Check,
  circle: Circle,
  down: ChevronDown,
  back: ChevronLeft,
  upload: Upload,
  copy: Copy,
  filter: ListFilter
} as const

export type IconName = keyof typeof icons

/** A picture next to a word, or alone in a button that has an accessible name. */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    {icons[name].map(([tag, attributes]) => h(tag, attributes))}
  </svg>
)

/** The product's logo: a gate. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <rect width="24" height="24" rx="6" />
    <path d="M6.5 18v-6a5.5 5.5 0 0 1 11 0v6M12 18v-5.5" />
  </svg>
)
