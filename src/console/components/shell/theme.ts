import { signal } from "@preact/signals"

export type Theme = "system" | "light" | "dark"

/** A preference of this browser; nothing else is stored under this key. */
const key = "console-theme"

const stored = (): Theme => {
  const found = localStorage.getItem(key)
  return found === "light" || found === "dark" ? found : "system"
}

export const theme = signal<Theme>(stored())

export const applyTheme = (): void => {
  const { documentElement: page } = document
  if (theme.value === "system") delete page.dataset["theme"]
  else page.dataset["theme"] = theme.value
}

export const setTheme = (next: Theme): void => {
  theme.value = next
  if (next === "system") localStorage.removeItem(key)
  else localStorage.setItem(key, next)
  applyTheme()
}
