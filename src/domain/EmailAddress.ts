/**
 * The form in which addresses are compared: only A to Z become lower case. Lower-casing other letters could also
 * produce one of these (`İ`, the kelvin sign), although their address is another mailbox.
 */
export const foldAddress = (address: string): string =>
  address.replace(/[A-Z]+/gu, (letters) => letters.toLowerCase())
