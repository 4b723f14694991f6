"""Claim and settle of the protocol sketch, the baseline of scripts/bench sql."""

CLAIM = """
with c as materialized (       -- one probe per lane; credits sum to the batch, so nothing is locked and then left
  select q.tid from unnest(%(lanes)s::int2[], %(credits)s::int[], %(lwd)s::timestamptz[],
      %(lwi)s::uuid[]) l(lane,credit,lwd,lwi)
  cross join lateral (select ctid as tid from postbell.queue
     where provider=%(p)s and crashes=%(cr)s and lane=l.lane and due_at<=now()
         and (due_at,notification_id)>=(l.lwd,l.lwi)
     order by due_at, notification_id limit l.credit for update skip locked) q),
q as (delete from postbell.queue where ctid=any(array(select tid from c))
      returning notification_id as id, lane, due_at, attempt, crashes, prior, after_device),
-- LEFT JOIN: every row that left the queue is in the lease and in the answer, whatever else is missing
o as materialized (
  select row_number() over ()::int2 as pos, q.id, q.lane, q.due_at, (q.attempt+1)::int2 as attempt, q.crashes,
      q.prior, q.after_device,
     n.id is null as orphan, n.tenant_id, n.principal_id, n.kind, n.device_no, n.payload, n.expires_at,
         k.reason as closed, k.at as closed_at
  from q left join postbell.outbox n on n.id=q.id
  left join lateral (select s.reason, s.at from postbell.settlements s where s.notification_id=q.id
      and s.provider is null order by s.seq desc limit 1) k on true),
-- one LATERAL, no join of two CTEs: with hash and merge joins pinned off that would be quadratic
ot as materialized (
  select o.*, d.device_no as t_dev, d.token, d.token_seq from o left join lateral (
    select d.device_no, d.token, d.token_seq from postbell.devices d
     where not o.orphan and o.expires_at>now() and (o.closed is null or o.closed='reopened')
       and d.tenant_id=o.tenant_id and d.principal_id=o.principal_id and d.provider=%(p)s and d.token is not null
           and d.device_no>o.after_device
       and (o.device_no is null or d.device_no=o.device_no) and o.kind<>all(d.muted)
       and (not o.prior or not exists (select 1 from postbell.deliveries x where x.notification_id=o.id
           and x.device_no=d.device_no
              and (x.outcome in ('delivered','unregistered') or (x.final and (o.closed is distinct from 'reopened'
                  or x.id>postbell.uuid_floor(o.closed_at))) or x.retry_at>now())))
     order by d.device_no limit %(per_row)s) d on true),
b as (insert into postbell.leases(batch,owner,provider,claimed_at,until,ids,lanes,attempts,
  crashes,cursors,open,t_pos,t_dev)
  select %(batch)s,%(owner)s,%(p)s,now(),now()+%(len)s, array_agg(id), array_agg(lane), array_agg(attempt),
      array_agg(crashes), array_agg(after_device),
     repeat('1',count(*)::int)::varbit, (select coalesce(array_agg(pos),'{}') from ot where t_dev is not null),
         (select coalesce(array_agg(t_dev),'{}') from ot where t_dev is not null)
  from o having count(*)>0)
select pos, id, lane, due_at, attempt, crashes, prior, after_device,
  case when orphan then 'orphan' when closed<>'reopened' then 'closed' when expires_at<=now() then 'expired'
      else 'send' end as verdict,
  payload, t_dev, token, token_seq
from ot
"""

SETTLE = """
with own as materialized (     -- the fence: the row locked in its newest version
  select batch, provider, open & %(mask)s::varbit as leaving, open & ~(%(mask)s::varbit) as rest,
     -- detoasted once, only when rows go somewhere
     case when needs then ids||'{}'::uuid[] end as ids, case when needs then lanes||'{}'::int2[] end as lanes, case
         when needs then crashes||'{}'::int2[] end as crashes
  from postbell.leases, (select cardinality(%(bp)s::int2[])+cardinality(%(ep)s::int2[])>0 as needs) z
      where batch=%(batch)s and owner=%(owner)s for update of leases),
l as (insert into postbell.deliveries(id,notification_id,device_no,batch,provider,attempt,
  final,late,outcome,reason,retry_at)
  select x.id,x.n,x.d,%(batch)s,%(p)s,x.att,x.fin, not exists(select 1 from own), x.oc, x.rs, now()+x.delay
  from unnest(%(lid)s::uuid[],%(ln)s::uuid[],%(ld)s::bigint[],%(la)s::int2[],
    %(lf)s::bool[],%(lo)s::text[],%(lr)s::text[],%(ly)s::interval[])
    x(id,n,d,att,fin,oc,rs,delay)
  order by x.id on conflict do nothing returning 1),
back as (insert into postbell.queue(due_at,notification_id,provider,crashes,lane,attempt,prior,after_device)
  -- only what is still open AND leaves now may go anywhere: a repeated settle finds no such bit
  select now()+r.delay, own.ids[r.pos], own.provider, case when r.clear then 0 else own.crashes[r.pos] end,
      own.lanes[r.pos], r.att, r.prior, r.cur
  from own, unnest(%(bp)s::int2[],%(bd)s::interval[],%(ba)s::int2[],%(bpr)s::bool[],%(bc)s::bigint[],%(bcl)s::bool[])
      r(pos,delay,att,prior,cur,clear)
  where get_bit(own.leaving,r.pos-1)=1 order by 2 on conflict do nothing returning 1),
ends as (insert into postbell.settlements(notification_id,provider,reason)
  select own.ids[e.pos], own.provider, e.reason from own, unnest(%(ep)s::int2[],%(er)s::text[]) e(pos,reason)
  where get_bit(own.leaving,e.pos-1)=1 order by 1 returning 1),
shrunk as (update postbell.leases t set open=own.rest from own where t.batch=own.batch and bit_count(own.rest)>0
    and bit_count(own.leaving)>0),
gone as (delete from postbell.leases t using own where t.batch=own.batch and bit_count(own.rest)=0)
select (select count(*) from own), (select count(*) from l), (select count(*) from back), (select count(*) from ends)
"""
