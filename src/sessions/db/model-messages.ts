/** A released step as those in `schema.ts`: never changed. It says what src/agent/context/view.ts makes of the same records. */
export const MODEL_MESSAGES = `
-- What the model sees of a session now, in its order. form: pinned (the system prompt), summary (the artifact that
-- stands for the messages before keep_from, below the first and the latest request), whole, or mark: a result of 300
-- characters or more that is named and not shown any more. body is what is kept: of a mark, the message that it stands
-- for. place is that of the message, null where there is none.
CREATE VIEW model_messages AS
WITH
  -- Every compaction that no later going back has undone.
  standing AS (
    SELECT c.* FROM compactions c
    WHERE NOT EXISTS (
      SELECT 1 FROM records r
      WHERE r.session = c.session AND r.seq > c.seq
        AND (r.kind = 'cleared' OR (r.kind = 'rolled_back' AND json_extract(r.body, '$.to') < c.at_count))
    )
  ),
  latest AS (
    SELECT s.* FROM standing s
    WHERE s.seq = (SELECT max(t.seq) FROM standing t WHERE t.session = s.session)
  ),
  known AS (SELECT * FROM messages WHERE gone IS NULL),
  -- No result is parted from its call.
  bounds AS (
    SELECT l.session, l.seq, l.prune_before, l.artifact, coalesce((
      SELECT max(k.place) FROM known k
      WHERE k.session = l.session AND k.place <= l.keep_from AND k.role <> 'tool'
    ), 0) AS border, l.keep_from, (SELECT count(*) FROM known k WHERE k.session = l.session) AS counted
    FROM latest l
  ),
  kept AS (
    SELECT b.session, b.seq, b.prune_before, b.artifact,
      CASE WHEN b.keep_from < b.counted OR (
        SELECT k.role = 'assistant' AND json_array_length(k.body, '$.calls') > b.counted - 1 - k.place
        FROM known k WHERE k.session = b.session AND k.place = b.border
      ) THEN b.border ELSE b.counted END AS keep_from
    FROM bounds b
  )
SELECT r.session, r.seq, 0 AS part, NULL AS place, 'system' AS role, 'pinned' AS form, json_extract(r.body, '$.text') AS body
FROM records r
WHERE r.kind = 'pinned'
  AND r.seq = (SELECT min(p.seq) FROM records p WHERE p.session = r.session AND p.kind = 'pinned')
UNION ALL
SELECT session, seq, 1, NULL, 'user', 'summary', artifact FROM kept WHERE keep_from > 0
UNION ALL
SELECT k.session, k.seq, 2, k.place, k.role,
  CASE WHEN k.role = 'tool' AND k.place < coalesce(c.prune_before, 0) AND length(json_extract(k.body, '$.text')) >= 300
    THEN 'mark' ELSE 'whole' END,
  k.body
FROM known k LEFT JOIN kept c ON c.session = k.session
WHERE k.place >= coalesce(c.keep_from, 0)
ORDER BY 1, 3, 4;
`;
