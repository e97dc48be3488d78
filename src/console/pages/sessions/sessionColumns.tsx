import type { Schemas } from "../../api/schema.ts"
import type { Column } from "../../components/PagedTable.tsx"
import { Time } from "../../components/Values.tsx"
import { texts } from "../../texts/en.ts"
import { operatorTexts } from "../../texts/en/operator.ts"

export type Session = Schemas["Session"]

const words = operatorTexts.sessions

export const sessionColumns: ReadonlyArray<Column<Session>> = [
  {
    title: words.method,
    cell: ({ current, method }) => (
      <>
        {words.methods[method]}
        {current && (
          <div>
            <span class="badge">{words.current}</span>
          </div>
        )}
      </>
    )
  },
  { title: words.address, cell: ({ address }) => <code>{address ?? words.unknown}</code> },
  {
    title: words.seen,
    cell: ({ created_at: created, last_seen_at: seen }) => (
      <>
        <Time at={seen} />
        <div class="faint">
          {words.opened} <Time at={created} />
        </div>
      </>
    )
  },
  { title: words.ends, cell: ({ expires_at: at }) => <Time at={at} /> }
]

/** The session that asks ends by signing out. */
export const revokeColumn = (ask: (session: Session) => void): Column<Session> => ({
  title: texts.actions,
  cell: (session) =>
    session.current ? null : (
      <button
        type="button"
        class="small danger"
        aria-label={words.revokeOf(words.methods[session.method])}
        onClick={() => ask(session)}
      >
        {words.revoke}
      </button>
    )
})
