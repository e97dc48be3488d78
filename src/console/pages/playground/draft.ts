import { useState } from "preact/hooks"
import { session } from "../../api/session.ts"
import { viewedUser } from "../../router/location.ts"

/**
 * What is typed and said in the playground, until the tab is closed: a reload, or a session that has to be begun
 * again, loses nothing. By user, so that nobody else who signs in sees it.
 */
const keyOf = (name: string): string =>
  `playground ${viewedUser() ?? session.value?.user?.id ?? ""} ${name}`

/** The browser keeps some megabytes a page; what does not fit is not kept. */
const write = (key: string, value: unknown): void => {
  try {
    sessionStorage.setItem(key, JSON.stringify(value))
  } catch {
    sessionStorage.removeItem(key)
  }
}

/** Puts a value under a name, for the form that reads it next. */
export const writeDraft = (name: string, value: unknown): void => write(keyOf(name), value)

/** A value that is kept under a name; `keep` says what of it is worth keeping. */
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

/** The models that were chosen last, in this browser. */
export const recentModels = (): ReadonlyArray<string> => {
  const text = localStorage.getItem(recentKey)
  return text === null ? [] : text.split("\n")
}

export const noteModel = (name: string): void => {
  const others = recentModels().filter((it) => it !== name)
  localStorage.setItem(recentKey, [name, ...others].slice(0, recentMax).join("\n"))
}
