import { useState } from "preact/hooks"
import { session } from "../../api/session.ts"
import { viewedUser } from "../../router/location.ts"

/**
 * Input and conversations in the playground are kept until the tab is closed, so that a reload or a new session loses
 * nothing. Keyed by user, so that the next user does not see them.
 */
const keyOf = (name: string): string =>
  `playground ${viewedUser() ?? session.value?.user?.id ?? ""} ${name}`

/** The browser stores a few megabytes per page; what does not fit is dropped. */
const write = (key: string, value: unknown): void => {
  try {
    sessionStorage.setItem(key, JSON.stringify(value))
  } catch {
    sessionStorage.removeItem(key)
  }
}

/** Stores a value for the next form that reads this name. */
export const writeDraft = (name: string, value: unknown): void => write(keyOf(name), value)

/** A stored value. `keep` selects the part to store. */
export const useDraft = <T>(name: string, initial: T, keep: (value: T) => T = (it) => it) => {
  const key = keyOf(name)
  const [value, setValue] = useState<T>(() => {
    const text = sessionStorage.getItem(key)
    return text === null ? initial : JSON.parse(text)
  })
  const update = (next: (before: T) => T) =>
    setValue((before) => {
      const now = next(before)
      write(key, keep(now))
      return now
    })
  return [value, (next: T) => update(() => next), update] as const
}

export const hasDraft = (name: string): boolean => sessionStorage.getItem(keyOf(name)) !== null

const recentKey = "console-models"
const recentMax = 4

/** The models chosen last in this browser. */
export const recentModels = (): ReadonlyArray<string> => {
  const text = localStorage.getItem(recentKey)
  return text === null ? [] : text.split("\n")
}

export const noteModel = (name: string): void => {
  const others = recentModels().filter((it) => it !== name)
  localStorage.setItem(recentKey, [name, ...others].slice(0, recentMax).join("\n"))
}
