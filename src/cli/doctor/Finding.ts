/** What one look found. `broken`: the service does not work so. */
export interface Finding {
  readonly check: string
  readonly status: "ok" | "warning" | "broken" | "skipped"
  readonly detail: string
  /** What to do; `null`: nothing. */
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

/** From the one line that faults of the configuration and of the store are: fault, then remedy. */
export const ofFault = (check: string, message: string): Finding => {
  const [detail = message, ...rest] = message.split(/; (?=[a-z])|(?<=[^.])\. (?=[A-Z])/u)
  return finding(check)("broken", detail, rest.length === 0 ? null : rest.join("; "))
}
