/** A file as a data URI, which is the form that bodies accept. */
export const dataUriOf = (file: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener("load", () => resolve(String(reader.result)))
    reader.addEventListener("error", () => reject(new Error(reader.error?.message ?? "")))
    reader.readAsDataURL(file)
  })

const units = ["bytes", "kB", "MB", "GB"] as const

/** `3.4 MB`. A kilobyte is 1024 bytes, as in the documented limits. */
export const showBytes = (bytes: number): string => {
  let size = bytes
  let unit = 0
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024
    unit += 1
  }
  return `${unit === 0 || Number.isInteger(size) ? size : size.toFixed(1)} ${units[unit]}`
}
