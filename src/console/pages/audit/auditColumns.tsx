import type { Schemas } from "../../api/schema.ts"
import { createdColumn } from "../../components/list/createdColumn.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { None } from "../../components/Values.tsx"
import { operatorTexts } from "../../texts/en/operator.ts"
import { actionName, isRead } from "./actionName.ts"

export type Entry = Schemas["AuditEntry"]

const words = operatorTexts.audit

const shortMax = 16

const Id = ({ id }: { readonly id: string }) => (
  <code title={id}>{id.length > shortMax ? `…${id.slice(-8)}` : id}</code>
)

/** Changes stand out; reads are faint. */
const Action = ({ trace_id: trace, type }: Entry) => (
  <span
    class={isRead(type) ? "faint" : "action"}
    title={[type, trace === null ? "" : `${words.trace} ${trace}`].filter(Boolean).join(" · ")}
  >
    {actionName(type)}
  </span>
)

const Actor = ({ actor }: Entry) => (
  <span class="nowrap" title={[actor.id, actor.ip_address].filter((it) => it !== null).join(" · ")}>
    {/* A session without a user is the operator's */}
    {words.actors[actor.user_id === null ? "operator" : actor.type]}
    {actor.ip_address !== null && <span class="faint"> {actor.ip_address}</span>}
  </span>
)

/** What was changed, and its owner. */
const Subject = ({ resource_id: resource, user_id: user }: Entry) => (
  <>
    {resource !== null && resource !== user && (
      <>
        <Id id={resource} />{" "}
      </>
    )}
    {user !== null && (
      <span class="faint nowrap">
        {words.user} <Id id={user} />
      </span>
    )}
  </>
)

const Changes = ({ changes }: Entry) => {
  const text = Object.entries(changes)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join(", ")
  return text === "" ? (
    <None />
  ) : (
    <code class="clip changes" title={text}>
      {text}
    </code>
  )
}

export const auditColumns: ReadonlyArray<Column<Entry>> = [
  { title: words.type, isPlain: true, cell: (entry) => <Action {...entry} /> },
  { title: words.actor, isPlain: true, cell: (entry) => <Actor {...entry} /> },
  { title: words.resource, isPlain: true, cell: (entry) => <Subject {...entry} /> },
  { title: words.changes, isPlain: true, cell: (entry) => <Changes {...entry} /> },
  createdColumn(words.at)
]
