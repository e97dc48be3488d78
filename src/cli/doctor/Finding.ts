/** The result of one check. `broken`: the service does not work in this state. */
export interface Finding {
  readonly check: string
  readonly status: "ok" | "warning" | "broken" | "skipped"
  readonly detail: string
  /** The remedy, or `null`. */
  readonly remedy: string | null
}

export const finding =
  (check: string) =>
  (status: Finding["status"], detail: string, remedy: string | null = null): Finding => ({
    check,
    status,
    detail,
    remedy
  })

/** Splits the one-line message of a configuration or store fault into the fault and its remedy. */
export const ofFault = (check: string, message: string): Finding => {
  const [detail = message, ...rest] = message.split(/; (?=[a-z])|(?<=[^.])\. (?=[A-Z])/u)
  return finding(check)("broken", detail, rest.length === 0 ? null : rest.join("; "))
}
