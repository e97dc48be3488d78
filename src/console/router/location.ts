import { computed, signal } from "@preact/signals"
import { basePath } from "../api/address.ts"

/** The path of the console. */
export const root = `${basePath}/console`

export interface Location {
  /** The path below `/console`; `/` is the home page. */
  readonly path: string
  readonly query: URLSearchParams
}

const read = (): Location => ({
  path: globalThis.location.pathname.slice(root.length) || "/",
  query: new URLSearchParams(globalThis.location.search)
})

const current = signal(read())

/** The current address as a signal. */
export const location = computed(() => current.value)

/** Pages and scroll positions are stored per history entry, so that going back restores them */
history.scrollRestoration = "manual"

let newestEntry = 0

const newEntry = () => {
  newestEntry += 1
  return { entry: `${performance.timeOrigin} ${newestEntry}` }
}

if (entryOf() === "") history.replaceState(newEntry(), "")

/** The id of the current history entry. */
export function entryOf(): string {
  const state: unknown = history.state
  return typeof state === "object" && state !== null && "entry" in state ? String(state.entry) : ""
}

const places = new Map<string, number>()

/** How long to wait for a reloaded page to become as long as it was, in milliseconds. */
const restoreMillis = 2000

const restorePlace = (entry: string): void => {
  const place = places.get(entry) ?? 0
  const until = performance.now() + restoreMillis
  const next = () => {
    if (entryOf() !== entry) return
    globalThis.scrollTo(0, place)
    if (globalThis.scrollY < place - 1 && performance.now() < until) requestAnimationFrame(next)
  }
  requestAnimationFrame(next)
}

/** Recorded while scrolling, because the page has already changed when the browser goes back */
globalThis.addEventListener("scroll", () => places.set(entryOf(), globalThis.scrollY), {
  passive: true
})

globalThis.addEventListener("popstate", () => {
  current.value = read()
  restorePlace(entryOf())
})

export type Query = Readonly<Record<string, string | undefined>>

/** The user as whom the operator views the console, from `?user_id=` in the address. */
export const viewedUser = (): string | undefined => current.value.query.get("user_id") ?? undefined

/** The address of a page. Keeps the user as whom the operator views the console. */
export const hrefOf = (path: string, query: Query = {}): string => {
  const params = new URLSearchParams()
  const all: Query = { user_id: viewedUser(), ...query }
  for (const [name, value] of Object.entries(all)) {
    if (value !== undefined && value !== "") params.set(name, value)
  }
  const search = params.toString()
  return `${root}${path === "/" ? "" : path}${search === "" ? "" : `?${search}`}`
}

/** Opens a page. `replace`: replaces the current history entry. */
export const navigate = (href: string, replace = false): void => {
  if (replace) history.replaceState(history.state, "", href)
  else history.pushState(newEntry(), "", href)
  const before = current.value.path
  current.value = read()
  if (current.value.path !== before) globalThis.scrollTo(0, 0)
}

/** Changes query parameters of the current page without a history entry, for example while a filter is typed. */
export const setQuery = (change: Query): void => {
  const { path, query } = current.value
  navigate(hrefOf(path, { ...Object.fromEntries(query), ...change }), true)
}
