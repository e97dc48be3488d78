import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Schemas } from "../../api/schema.ts"
import { Field, SelectField, TextField } from "../../components/form/Field.tsx"
import { Fold } from "../../components/form/Fold.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { ProblemView } from "../../components/States.tsx"
import { billTexts } from "../../texts/en/bills.ts"
import { BillReport } from "./BillReport.tsx"

const words = billTexts

const vendors = ["openai", "anthropic", "gemini", "dashscope", "fal", "replicate"] as const
type Vendor = (typeof vendors)[number]

const columnNames = ["id", "model", "date", "amount"] as const
type ColumnNames = { readonly [name in (typeof columnNames)[number]]?: string }

type Outcome =
  | { readonly report: Schemas["Reconciliation"] }
  | { readonly cause: unknown }
  | "reading"
  | undefined

/** The column names that were filled in. */
const filled = (names: ColumnNames): ColumnNames =>
  Object.fromEntries(Object.entries(names).filter(([, name]) => name.trim() !== ""))

/** `/bills`: a vendor's bill beside what was bought and charged. */
export default function BillsPage() {
  const [vendor, setVendor] = useState<Vendor>("openai")
  const [file, setFile] = useState<File | undefined>(undefined)
  const [names, setNames] = useState<ColumnNames>({})
  const [isMissing, setMissing] = useState(false)
  const [outcome, setOutcome] = useState<Outcome>(undefined)
  const compare = async (chosen: File) => {
    setOutcome("reading")
    try {
      const columns = filled(names)
      const body = {
        vendor,
        bill: await chosen.text(),
        ...(Object.keys(columns).length === 0 ? {} : { columns })
      }
      setOutcome({ report: await api.POST("/manage/v1/reconciliations", { body }) })
    } catch (cause) {
      setOutcome({ cause })
    }
  }
  return (
    <>
      <PageHeader title={words.title} about={words.about} />
      <form
        class="card form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          setMissing(file === undefined)
          if (file !== undefined) void compare(file)
        }}
      >
        <SelectField
          label={words.vendor}
          value={vendor}
          options={vendors.map((it) => [it, words.vendors[it]])}
          onText={(value) => setVendor(vendors.find((it) => it === value) ?? "openai")}
        />
        <Field
          label={words.file}
          help={words.fileHelp}
          error={isMissing && file === undefined ? words.noFile : undefined}
        >
          {(attributes) => (
            <input
              {...attributes}
              type="file"
              accept=".csv,text/csv"
              onChange={({ currentTarget }) => setFile(currentTarget.files?.[0])}
            />
          )}
        </Field>
        <Fold name={words.columns} isFaulty={false}>
          <p class="help">{words.columnsHelp}</p>
          {columnNames.map((name) => (
            <TextField
              key={name}
              label={words.columnNames[name]}
              value={names[name] ?? ""}
              onText={(value) => setNames({ ...names, [name]: value })}
            />
          ))}
        </Fold>
        <button type="submit" class="primary" disabled={outcome === "reading"}>
          {outcome === "reading" ? words.reading : words.compare}
        </button>
      </form>
      <div role="status">
        {typeof outcome === "object" && "report" in outcome && (
          <BillReport report={outcome.report} />
        )}
      </div>
      {typeof outcome === "object" && "cause" in outcome && <ProblemView cause={outcome.cause} />}
    </>
  )
}
