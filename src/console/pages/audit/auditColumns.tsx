import type { Schemas } from "../../api/schema.ts"
import type { Column } from "../../components/PagedTable.tsx"
import { Time } from "../../components/Values.tsx"
import { texts } from "../../texts/en.ts"
import { operatorTexts } from "../../texts/en/operator.ts"

export type Entry = Schemas["AuditEntry"]

const words = operatorTexts.audit

const Id = ({ id }: { readonly id: string | null }) =>
  id === null ? (
    <>{texts.none}</>
  ) : (
    <code title={id}>{id.length > 16 ? `${id.slice(0, 12)}…` : id}</code>
  )

const Actor = ({ actor }: Entry) => (
  <>
    {/* A session without a user is the operator's */}
    {words.actors[actor.user_id === null ? "operator" : actor.type]}
    {actor.id !== null && (
      <div>
        <Id id={actor.id} />
      </div>
    )}
    {actor.ip_address !== null && <div class="faint">{actor.ip_address}</div>}
  </>
)

/** What was changed, and whose it is. */
const Subject = ({ resource_id: resource, user_id: user }: Entry) => (
  <>
    {resource !== null && resource !== user && <Id id={resource} />}
    {user !== null && (
      <div>
        {words.user} <Id id={user} />
      </div>
    )}
  </>
)

const Changes = ({ changes }: Entry) => {
  const fields = Object.entries(changes)
  return fields.length === 0 ? (
    <>{texts.none}</>
  ) : (
    <>
      {fields.map(([name, value]) => (
        <div key={name}>
          <code>
            {name}: {JSON.stringify(value)}
          </code>
        </div>
      ))}
    </>
  )
}

export const auditColumns: ReadonlyArray<Column<Entry>> = [
  {
    title: words.at,
    cell: ({ created_at: at, trace_id: trace }) => (
      <>
        <Time at={at} />
        <div class="faint" title={words.trace}>
          <Id id={trace} />
        </div>
      </>
    )
  },
  { title: words.type, cell: ({ type }) => <strong>{type}</strong> },
  { title: words.actor, cell: (entry) => <Actor {...entry} /> },
  { title: words.resource, cell: (entry) => <Subject {...entry} /> },
  { title: words.changes, cell: (entry) => <Changes {...entry} /> }
]
