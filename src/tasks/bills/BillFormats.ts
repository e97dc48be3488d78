/** The possible names of a bill's columns; the first one present is read. */
export interface BillNames {
  readonly id: ReadonlyArray<string>
  readonly model: ReadonlyArray<string>
  readonly date: ReadonlyArray<string>
  readonly amount: ReadonlyArray<string>
}

interface BillFormat extends Partial<BillNames> {
  /** Converts the model in the bill to the name that the vendor's API uses. */
  readonly modelOf?: (text: string) => string
}

/** The column names of the vendors' own exports. docs/reference/vendors.md#bills */
const formats: Readonly<Record<string, BillFormat>> = {
  openai: {
    model: ["line_item"],
    date: ["start_time_iso", "start_time"],
    amount: ["amount_value"],
    // "gpt-4o-2024-08-06, input"
    modelOf: (text) => text.split(",", 1)[0] ?? text
  },
  anthropic: {
    date: ["usage_date_utc"],
    amount: ["cost_usd"],
    // "Claude Haiku 4.5"
    modelOf: (text) => text.toLowerCase().replaceAll(/[ .]+/gu, "-")
  },
  fal: {
    id: ["request_id"],
    model: ["endpoint_id"],
    date: ["timestamp"],
    amount: ["cost_total"]
  },
  dashscope: {
    model: ["InstanceID", "Instance ID"],
    date: ["BillingDate", "Billing Date", "UsageStartTime"],
    amount: ["PretaxAmount", "Pretax Amount"],
    // "12xxx;llm-xxx;qwen-max;output_token;app"
    modelOf: (text) => text.split(";")[2] ?? text
  }
}

const own = { id: ["id"], model: ["model"], date: ["date"], amount: ["amount"] } as const

/**
 * The column names of a vendor's bill: the caller's names take precedence over this service's, and these over the
 * vendor's.
 */
export const billFormat = (
  vendor: string,
  given: { readonly [member in keyof BillNames]?: string | undefined } = {}
): { readonly names: BillNames; readonly modelOf: (text: string) => string } => {
  const { modelOf = (text: string) => text, ...theirs } = formats[vendor] ?? {}
  const namesOf = (member: keyof BillNames): ReadonlyArray<string> => {
    const name = given[member]
    return name === undefined ? [...own[member], ...(theirs[member] ?? [])] : [name]
  }
  return {
    names: {
      id: namesOf("id"),
      model: namesOf("model"),
      date: namesOf("date"),
      amount: namesOf("amount")
    },
    modelOf
  }
}
