/**
 * The form in which addresses are compared: A to Z in lower case, and nothing else. Other letters become one
 * of these too (`İ`, the sign of the kelvin), and their address is another mailbox.
 */
export const foldAddress = (address: string): string =>
  address.replace(/[A-Z]+/gu, (letters) => letters.toLowerCase())
