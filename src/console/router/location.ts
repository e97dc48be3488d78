import { computed, signal } from "@preact/signals"
import { basePath } from "../api/address.ts"

/** Where the console lies. */
export const root = `${basePath}/console`

export interface Location {
  /** Below `/console`: `/` is home. */
  readonly path: string
  readonly query: URLSearchParams
}

const read = (): Location => ({
  path: globalThis.location.pathname.slice(root.length) || "/",
  query: new URLSearchParams(globalThis.location.search)
})

const current = signal(read())

/** The address, as a signal. */
export const location = computed(() => current.value)

/** Pages and places are kept by entry of the history, so that the way back leads to where one was. */
history.scrollRestoration = "manual"

let newestEntry = 0

const newEntry = () => {
  newestEntry += 1
  return { entry: `${performance.timeOrigin} ${newestEntry}` }
}

if (entryOf() === "") history.replaceState(newEntry(), "")

/** The name of the current entry of the history. */
export function entryOf(): string {
  const state: unknown = history.state
  return typeof state === "object" && state !== null && "entry" in state ? String(state.entry) : ""
}

const places = new Map<string, number>()

/** How long a page that loads its rows again may take to be as long as it was. */
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

/** Noted while it is looked at: when the browser goes back, the page is another one already. */
globalThis.addEventListener("scroll", () => places.set(entryOf(), globalThis.scrollY), {
  passive: true
})

globalThis.addEventListener("popstate", () => {
  current.value = read()
  restorePlace(entryOf())
})

export type Query = Readonly<Record<string, string | undefined>>

/** The user whose pages the operator reads, from the address: `?user_id=`. */
export const viewedUser = (): string | undefined => current.value.query.get("user_id") ?? undefined

/** The address of a page. The user that the operator views as stays in it. */
export const hrefOf = (path: string, query: Query = {}): string => {
  const params = new URLSearchParams()
  const all: Query = { user_id: viewedUser(), ...query }
  for (const [name, value] of Object.entries(all)) {
    if (value !== undefined && value !== "") params.set(name, value)
  }
  const search = params.toString()
  return `${root}${path === "/" ? "" : path}${search === "" ? "" : `?${search}`}`
}

/** Opens a page. `replace`: the browser's way back skips the one before. */
export const navigate = (href: string, replace = false): void => {
  if (replace) history.replaceState(history.state, "", href)
  else history.pushState(newEntry(), "", href)
  const before = current.value.path
  current.value = read()
  if (current.value.path !== before) globalThis.scrollTo(0, 0)
}

/** Changes parameters of the address of this page; without history, as of a filter that is typed. */
export const setQuery = (change: Query): void => {
  const { path, query } = current.value
  navigate(hrefOf(path, { ...Object.fromEntries(query), ...change }), true)
}
