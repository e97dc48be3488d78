/** Counts in forms: a whole number from 1, or empty. */

export const isCount = (text: string): boolean =>
  text.trim() === "" || /^[1-9]\d{0,6}$/u.test(text.trim())

/** `null` if nothing was typed. */
export const countOf = (text: string): number | null => (text.trim() === "" ? null : Number(text))
