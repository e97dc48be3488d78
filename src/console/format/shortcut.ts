const isMac = navigator.platform.startsWith("Mac")

/** A key with the one that commands: `⌘K` on a Mac, elsewhere `Ctrl K`. */
export const shortcutOf = (key: string): string => (isMac ? `⌘${key}` : `Ctrl ${key}`)
