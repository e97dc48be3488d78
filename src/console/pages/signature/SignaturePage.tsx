import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { service } from "../../api/session.ts"
import { Field, TextField } from "../../components/form/Field.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { ProblemView } from "../../components/States.tsx"
import { isoOfLocalInput } from "../../format/time.ts"
import { webhookTexts } from "../../texts/en/webhooks.ts"
import { WebhookTabs } from "../webhooks/WebhookTabs.tsx"
import { checkSignature, deliveryIdIn } from "./signature.ts"
import type { Finding, Report } from "./signature.ts"

const words = webhookTexts.signature

const fieldNames = ["secret", "headers", "body", "at"] as const
type Fields = Readonly<Record<(typeof fieldNames)[number], string>>

/** The body that was sent, if the log has the delivery. Only the delivery's id leaves the browser. */
const sentBody = async (id: string | undefined): Promise<string | undefined> => {
  if (id === undefined || !/^whd_[\w-]{1,80}$/u.test(id)) return undefined
  const found = await api
    .GET("/manage/v1/webhook-deliveries/{id}", { path: { id } })
    .catch(() => undefined)
  return found === undefined || found.body === "" ? undefined : found.body
}

const check = async ({ at, body, headers, secret }: Fields): Promise<Report> => {
  const serviceName = service.value?.name ?? ""
  return checkSignature({
    serviceName,
    secret,
    headers,
    body,
    atMillis: at === "" ? Date.now() : new Date(isoOfLocalInput(at) ?? "").getTime(),
    sent: await sentBody(deliveryIdIn(serviceName, headers))
  })
}

/** `/webhooks/signature`: finds out in the browser why a receiver cannot verify a delivery. */
export default function SignaturePage() {
  const [fields, setFields] = useState<Fields>({ secret: "", headers: "", body: "", at: "" })
  const [state, setState] = useState<{ report?: Report; cause?: unknown }>({})
  const set = (name: keyof Fields) => (text: string) => {
    setFields((before) => ({ ...before, [name]: text }))
    setState({})
  }
  return (
    <>
      <PageHeader about={words.about} />
      <WebhookTabs />
      {globalThis.isSecureContext ? (
        <>
          <form
            onSubmit={(event) => {
              event.preventDefault()
              check(fields).then(
                (report) => setState({ report }),
                (cause: unknown) => setState({ cause })
              )
            }}
          >
            <TextField
              label={words.secret}
              autocomplete="off"
              required
              value={fields.secret}
              onText={set("secret")}
            />
            <Area
              label={words.headers}
              help={words.headersHelp}
              value={fields.headers}
              onText={set("headers")}
            />
            <Area label={words.body} value={fields.body} onText={set("body")} />
            <TextField
              label={words.at}
              help={words.atHelp}
              type="datetime-local"
              value={fields.at}
              onText={set("at")}
            />
            <button type="submit" class="primary">
              {words.check}
            </button>
          </form>
          {state.cause !== undefined && <ProblemView cause={state.cause} />}
          {state.report !== undefined && <Result report={state.report} />}
        </>
      ) : (
        <p class="banner">{words.insecure}</p>
      )}
    </>
  )
}

interface AreaProps {
  readonly label: string
  readonly help?: string
  readonly value: string
  readonly onText: (text: string) => void
}

const Area = ({ help, label, onText, value }: AreaProps) => (
  <Field label={label} help={help}>
    {(attributes) => (
      <textarea
        {...attributes}
        class="code"
        rows={6}
        required
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
      />
    )}
  </Field>
)

const columns: ReadonlyArray<Column<Finding>> = [
  { title: words.part, cell: ({ part }) => words.partNames[part] },
  { title: words.finding, cell: ({ text }) => text }
]

const Result = ({ report: { findings, isValid } }: { readonly report: Report }) => (
  <section aria-live="polite">
    <p class={isValid ? "status good verdict" : "status bad verdict"}>
      {isValid ? words.valid : words.invalid}
    </p>
    {findings.length > 0 && (
      <Table
        caption={words.parts}
        columns={columns}
        rows={findings}
        idOf={({ part, text }) => part + text}
      />
    )}
  </section>
)
