/** The value at the top of an axis: the smallest of 1, 2, 5, 10, 20, … that is not below the largest value. */
export const topOf = (most: number): number => {
  if (most <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(most))
  return [1, 2, 5, 10].map((step) => step * power).find((it) => it >= most) ?? most
}

/** An axis label, such as `12k`, `2.5` or `0.004`. It is rounded; exact values are shown elsewhere. */
export const showAxis = (value: number): string =>
  new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 2 })
    .format(value)
    .replace("-", "−")
