const isMac = navigator.platform.startsWith("Mac")

/** A keyboard shortcut for display: `⌘K` on a Mac, otherwise `Ctrl K`. */
export const shortcutOf = (key: string): string => (isMac ? `⌘${key}` : `Ctrl ${key}`)
