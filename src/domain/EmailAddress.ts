export const addressPattern = /^[^\s@]+@[^\s@]+$/u

/**
 * The form in which addresses are compared: only A to Z become lower case. Lower-casing other characters (`İ`, the
 * kelvin sign) can also produce these letters, although such an address is a different mailbox.
 */
export const foldAddress = (address: string): string =>
  address.replace(/[A-Z]+/gu, (letters) => letters.toLowerCase())
