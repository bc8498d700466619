"""Tiny DeepSeek-V4 reference (fp32 or fp64), token by token and independent of reference_forward.py.

usage: F64=1 python3 tiny_reference.py MODE [NTOKENS]   MODE in A B C D E (see reference_forward.py); needs numpy
"""
import numpy as np, math
import os
f32=np.float64 if os.environ.get("F64") else np.float32
def rms(x,w,eps): 
    x=x.astype(f32); return (x/np.sqrt((x*x).mean(-1,keepdims=True)+f32(eps)))*(1 if w is None else w)
def e4m3(v):
    a=np.abs(v).astype(np.float64); e=np.clip(np.floor(np.log2(np.maximum(a,2.0**-20))),-6,8); q=2.0**(e-3)
    return (np.sign(v)*np.minimum(np.round(a/q)*q,448)).astype(f32)
def e2m1(v):
    a=np.abs(v).astype(np.float64); e=np.clip(np.floor(np.log2(np.maximum(a,2.0**-10))),0,2); q=2.0**(e-1)
    return (np.sign(v)*np.minimum(np.round(a/q)*q,6)).astype(f32)
def p2c(x):
    m,e=np.frexp(x.astype(f32)); return np.ldexp(f32(1),np.where(m==0.5,e-1,e)).astype(f32)
def q8(x,bs):
    b=x.reshape(*x.shape[:-1],-1,bs); s=p2c(np.maximum(np.abs(b).max(-1,keepdims=True),f32(1e-4))*f32(1/448)); return (e4m3(np.clip(b/s,-448,448))*s).reshape(x.shape)
def q4(x,bs=32):
    b=x.reshape(*x.shape[:-1],-1,bs); s=p2c(np.maximum(np.abs(b).max(-1,keepdims=True),f32(6*2.0**-126))*f32(1/6)); return (e2m1(np.clip(b/s,-6,6))*s).reshape(x.shape)
def had(n):
    H=np.ones((1,1))
    while H.shape[0]<n: H=np.block([[H,H],[H,-H]])
    return (H/np.sqrt(n)).astype(f32)
def freqs(c,ratio):
    d=c['rope']; th=c['compress_theta'] if ratio else c['theta']
    i=np.arange(0,d,2).astype(f32)
    f=(1.0/(f32(th)**(i/f32(d)))).astype(f32)
    if ratio:
        L0=c['L0']
        cd=lambda r: d*math.log(L0/(r*2*math.pi))/(2*math.log(th))
        lo=max(math.floor(cd(c['beta_fast'])),0);hi=min(math.ceil(cd(c['beta_slow'])),d-1)
        ramp=np.clip((np.arange(d//2)-lo)/((hi-lo) if hi!=lo else .001),0,1).astype(f32)
        f=f/f32(c['factor'])*ramp+f*(1-ramp)
    return f.astype(f32)
def rope(x,pos,f,inv=False):
    d=2*len(f); a=(f32(pos)*f).astype(f32); c,s=np.cos(a),np.sin(a); s=-s if inv else s
    y=x.copy(); e,o=x[...,-d::2],x[...,-d+1::2]
    y[...,-d::2]=e*c-o*s; y[...,-d+1::2]=e*s+o*c
    return y
def sig(x): return 1/(1+np.exp(-x))
def sinkhorn(m,scale,base,hc=4,iters=20,eps=1e-6):
    pre=sig(m[:hc]*scale[0]+base[:hc])+eps; post=2*sig(m[hc:2*hc]*scale[1]+base[hc:2*hc])
    c=(m[2*hc:]*scale[2]+base[2*hc:]).reshape(hc,hc); c=np.exp(c-c.max(1,keepdims=True)); c=c/c.sum(1,keepdims=True)+eps
    c=c/(c.sum(0,keepdims=True)+eps)
    for _ in range(iters-1):
        c=c/(c.sum(1,keepdims=True)+eps); c=c/(c.sum(0,keepdims=True)+eps)
    return pre,post,c
class Comp:
    def __init__(s,W,p,ratio,D,c,f,index):
        s.W,s.p,s.r,s.D,s.c,s.f,s.index=W,p,ratio,D,c,f,index; s.co=2 if ratio==4 else 1
        s.kv=[];s.sc=[];s.ent=[]
    def step(s,x,pos):
        W,p,r,D=s.W,s.p,s.r,s.D
        s.kv.append(W[p+'wkv.weight']@x); s.sc.append(W[p+'wgate.weight']@x+W[p+'ape'][pos%r])
        if (pos+1)%r: return
        b=pos//r
        K=[];S=[]
        if s.co==2:
            for j in range((b-1)*r,b*r):
                if j>=0: K.append(s.kv[j][:D]);S.append(s.sc[j][:D])
            for j in range(b*r,b*r+r): K.append(s.kv[j][D:]);S.append(s.sc[j][D:])
        else:
            for j in range(b*r,b*r+r): K.append(s.kv[j]);S.append(s.sc[j])
        K=np.stack(K);S=np.stack(S); P=np.exp(S-S.max(0)); P/=P.sum(0)
        e=rms((K*P).sum(0),W[p+'norm.weight'],s.c['eps'])
        e=rope(e,b*r,s.f)
        if s.index: e=q4(had(D)@e) if s.c['sim'] else had(D)@e
        elif s.c['sim']:
            n=D-s.c['rope']; e=np.concatenate([q8(e[:n],64),e[n:]])
        s.ent.append(e.astype(f32))
class Model:
    def kind(s,n):
        md=s.c.get('mode','A')
        routed='.experts.' in n; shared='.shared_experts.' in n
        if md in('C','D'):
            if routed: return 'w4' if md=='D' else 'w8'
            if shared or n.endswith(('attn.wq_a.weight','attn.wq_b.weight','attn.wkv.weight','indexer.wq_b.weight')): return 'w8'
            return None
        if md=='E':
            if routed: return 'fp4'
            if n.endswith('attn.wo_a.weight'): return 'fp8w'
            if shared or n.endswith(('attn.wq_a.weight','attn.wq_b.weight','attn.wkv.weight','attn.wo_b.weight','indexer.wq_b.weight','e_proj.weight','h_proj.weight')): return 'fp8'
        return None
    def wt(s,n):
        k=s.kind(n)
        if k is None: return s.W[n]
        if n in s.qc: return s.qc[n]
        w=s.W[n].astype(f32)
        if k in('w8','w4'):
            m=127 if k=='w8' else 7
            sc=np.maximum(np.abs(w).max(1,keepdims=True),f32(1e-5))/f32(m); q=np.clip(np.round(w/sc),-m-1,m); r=(q,sc)
        elif k=='fp4': r=q4(w,32)
        else:
            o,i=w.shape; b=w.reshape(o//128,128,i//128,128); sc=p2c(np.abs(b).max((1,3),keepdims=True)*f32(1/448)); r=(e4m3(b/sc)*sc).reshape(o,i)
        s.qc[n]=r; return r
    def lin(s,n,x):
        k=s.kind(n); w=s.wt(n)
        if k in('w8','w4'):
            q,sc=w; sx=np.abs(x).max()/f32(127); xq=np.clip(np.round(x/sx),-128,127)
            return (q@xq)*sx*sc[:,0]
        if k in('fp8','fp4'): return w@q8(x,128)
        return w@x
    def __init__(s,W,c):
        s.W,s.c=W,c; s.qc={}; s.kv=[[] for _ in range(c['L'])]; s.cmp=[];s.ic=[];s.f=[]
        for l in range(c['L']):
            r=c['ratios'][l]; f=freqs(c,r); s.f.append(f)
            s.cmp.append(Comp(W,f'layers.{l}.attn.compressor.',r,c['hd'],c,f,False) if r else None)
            s.ic.append(Comp(W,f'layers.{l}.attn.indexer.compressor.',r,c['ihd'],c,f,True) if r==4 else None)
    def hc_pre(s,x,fn,scale,base):
        W=s.W; v=x.reshape(-1).astype(f32); m=(W[fn]@v)/np.sqrt((v*v).mean()+f32(s.c['eps']))
        pre,post,comb=sinkhorn(m,W[scale],W[base]); return (pre[:,None]*x).sum(0),post,comb
    def attn(s,l,x,t):
        W,c=s.W,s.c; p=f'layers.{l}.attn.'; f=s.f[l]; r=c['ratios'][l]; hd=c['hd']; n=hd-c['rope']
        qr=rms(s.lin(p+'wq_a.weight',x),W[p+'q_norm.weight'],c['eps'])
        q=rms((s.lin(p+'wq_b.weight',qr)).reshape(-1,hd),None,c['eps']); q=rope(q,t,f)
        kv=rope(rms(s.lin(p+'wkv.weight',x),W[p+'kv_norm.weight'],c['eps']),t,f)
        if c['sim']: kv=np.concatenate([q8(kv[:n],64),kv[n:]])
        s.kv[l].append(kv)
        keys=[s.kv[l][j] for j in range(max(0,t-c['win']+1),t+1)]
        if r:
            s.cmp[l].step(x,t); nc=(t+1)//r; ents=s.cmp[l].ent; assert len(ents)==nc
            if r==4:
                s.ic[l].step(x,t); ih=c['ihd']
                qi=rope((s.lin(p+'indexer.wq_b.weight',qr)).reshape(-1,ih),t,f)@had(ih).T
                if c['sim']: qi=q4(qi)
                w=(W[p+'indexer.weights_proj.weight']@x)*(ih**-.5*c['inh']**-.5)
                sc=np.array([(np.maximum(qi@k,0)*w).sum() for k in s.ic[l].ent])
                sel=np.argsort(-sc,kind='stable')[:min(c['topk'],nc)] if nc else []
                keys+=[ents[i] for i in sel]
            else: keys+=ents
        K=np.stack(keys); S=(q@K.T)*hd**-.5; M=S.max(1,keepdims=True); P=np.exp(S-M); P/=P.sum(1,keepdims=True)+np.exp(W[p+'attn_sink'][:,None]-M)
        o=rope(P@K,t,f,True)
        G=c['og']; o=o.reshape(G,-1); wa=s.wt(p+'wo_a.weight').reshape(G,-1,o.shape[1])
        return s.lin(p+'wo_b.weight',np.einsum('gd,grd->gr',o,wa).reshape(-1))
    def expert(s,p,x,w):
        W=s.W; lim=s.c['limit']; g=np.minimum(s.lin(p+'w1.weight',x),lim); u=np.clip(s.lin(p+'w3.weight',x),-lim,lim); h=g*sig(g)*u
        return s.lin(p+'w2.weight',h*w)
    def moe(s,l,x,tok):
        W,c=s.W,s.c; p=f'layers.{l}.ffn.'
        z=W[p+'gate.weight']@x; sc=np.sqrt(np.log1p(np.exp(-np.abs(z)))+np.maximum(z,0))
        if l<c['nhash']: idx=W[p+'gate.tid2eid'][tok]
        else: idx=np.argsort(-(sc+W[p+'gate.bias']),kind='stable')[:c['ntop']]
        w=sc[idx]; w=w/w.sum()*c['rscale']
        return sum(s.expert(f'{p}experts.{e}.',x,wi) for e,wi in zip(idx,w))+s.expert(p+'shared_experts.',x,1.0)
    def step(s,tok,t):
        W,c=s.W,s.c; X=np.repeat(W['embed.weight'][tok][None].astype(f32),4,0)
        for l in range(c['L']):
            p=f'layers.{l}.'
            for nm,fn in (('attn',lambda y:s.attn(l,y,t)),('ffn',lambda y:s.moe(l,y,tok))):
                y,post,comb=s.hc_pre(X,p+f'hc_{nm}_fn',p+f'hc_{nm}_scale',p+f'hc_{nm}_base')
                o=fn(rms(y,W[p+f'{nm}_norm.weight'],c['eps']).astype(f32))
                X=(post[:,None]*o[None]+comb.T@X).astype(f32)
        s.X=X
        v=X.reshape(-1); m=(W['hc_head_fn']@v)/np.sqrt((v*v).mean()+f32(c['eps'])); pre=sig(m*W['hc_head_scale'][0]+W['hc_head_base'])+1e-6
        return W['head.weight']@rms((pre[:,None]*X).sum(0),W['norm.weight'],c['eps'])

# ---------------- deterministic weights and driver ----------------
import sys,json
MASK=(1<<64)-1
def fnv(s):
    h=0xcbf29ce484222325
    for b in s.encode(): h=((h^b)*0x100000001b3)&MASK
    return h
def gen(name,n):
    with np.errstate(over='ignore'):
        k=np.arange(1,n+1,dtype=np.uint64)
        z=np.uint64(fnv(name))+k*np.uint64(0x9E3779B97F4A7C15)
        z=(z^(z>>np.uint64(30)))*np.uint64(0xBF58476D1CE4E5B9)
        z=(z^(z>>np.uint64(27)))*np.uint64(0x94D049BB133111EB)
        z=z^(z>>np.uint64(31))
    return ((z>>np.uint64(56)).astype(np.int64)-128)/128.0
H,V,NH,HD,QL,OG,OL,E,I,IH,ID=256,512,8,128,128,2,64,8,128,16,128
R=[0,0,4,128,4,128,4]; L=7; NHASH=3
shapes={}
def lin(n,o,i,sh=0): shapes[n]=((o,i),('lin',sh))
def one(n,s,k): shapes[n]=(s,(k,0))
one('embed.weight',(V,H),'unit'); lin('head.weight',V,H); one('norm.weight',(H,),'norm')
def block(p,r,hash):
    a=p+'attn.'
    lin(a+'wq_a.weight',QL,H);one(a+'q_norm.weight',(QL,),'norm');lin(a+'wq_b.weight',NH*HD,QL);lin(a+'wkv.weight',HD,H);one(a+'kv_norm.weight',(HD,),'norm')
    lin(a+'wo_a.weight',OG*OL,NH*HD//OG);lin(a+'wo_b.weight',H,OG*OL);one(a+'attn_sink',(NH,),'two')
    def comp(q,r,D):
        c=2 if r==4 else 1
        lin(q+'wkv.weight',c*D,H);lin(q+'wgate.weight',c*D,H);one(q+'ape',(r,c*D),'two');one(q+'norm.weight',(D,),'norm')
    if r: comp(a+'compressor.',r,HD)
    if r==4:
        lin(a+'indexer.wq_b.weight',IH*ID,QL);lin(a+'indexer.weights_proj.weight',IH,H);comp(a+'indexer.compressor.',4,ID)
    f=p+'ffn.'
    lin(f+'gate.weight',E,H,1)
    if not hash: one(f+'gate.bias',(E,),'eighth')
    for q in [f'experts.{e}.' for e in range(E)]+['shared_experts.']:
        lin(f+q+'w1.weight',I,H,3);lin(f+q+'w3.weight',I,H,3);lin(f+q+'w2.weight',H,I,-4)
    for s in ('attn','ffn'):
        one(p+f'hc_{s}_fn',(24,4*H),'fn');one(p+f'hc_{s}_base',(24,),'unit');one(p+f'hc_{s}_scale',(3,),'half1')
        one(p+f'{s}_norm.weight',(H,),'norm')
def hch(p): one(p+'hc_head_fn',(4,4*H),'fn');one(p+'hc_head_base',(4,),'unit');one(p+'hc_head_scale',(1,),'half1')
hch('')
for l in range(L): block(f'layers.{l}.',R[l],l<NHASH)
block('mtp.0.',0,False);hch('mtp.0.')
for n in('e_proj','h_proj'): lin(f'mtp.0.{n}.weight',H,H)
for n in('enorm','hnorm','norm'): one(f'mtp.0.{n}.weight',(H,),'norm')
W={}
for n,(s,(k,sh)) in shapes.items():
    v=gen(n,int(np.prod(s))).reshape(s)
    if k=='lin': v=v*2.0**(sh-int(np.floor(np.log2(s[1])/2)))
    elif k=='norm': v=1+v/4
    elif k=='two': v=2*v
    elif k=='eighth': v=v/8
    elif k=='fn': v=v/16
    elif k=='half1': v=1+v/2
    W[n]=v.astype(f32)
tid=np.array([[(5*t+3)%8,((5*t+3)%8+1+t%7)%8] for t in range(V)])
for l in range(NHASH): W[f'layers.{l}.ffn.gate.tid2eid']=tid
def conf(sim): return dict(L=L,ratios=R,hd=HD,rope=64,ihd=ID,inh=IH,topk=8,win=16,og=OG,theta=10000.,compress_theta=160000.,L0=65536,beta_fast=32,beta_slow=1,factor=16,eps=1e-6,sim=sim,limit=10.,nhash=NHASH,ntop=2,rscale=1.5)
N=int(sys.argv[2]) if len(sys.argv)>2 else 300
tok=[(37*i+11+(i*i)%13)%V for i in range(N+1)]
if __name__=='__main__':
    md=sys.argv[1]; sim=md in 'BE'; c=conf(sim); c['mode']=md
    m=Model(W,c)
    want={0,1,3,4,15,16,127,128,131,255,256,299}
    rec={}
    # mtp as extra layer
    W2=dict(W)
    for k,v in list(W.items()):
        if k.startswith('mtp.0.'): W2['layers.7.'+k[6:]]=v
    c2=dict(c,L=8,ratios=R+[0])
    mm=Model(W2,c2); mm.W=W2
    for t in range(N):
        lg=m.step(tok[t],t)
        X=m.X.copy()
        # mtp at position t: prev hidden at t, next token tok[t+1]; MTP position index = t
        e=rms(W['embed.weight'][tok[t+1]],W['mtp.0.enorm.weight'],1e-6); h=rms(X,W['mtp.0.hnorm.weight'],1e-6)
        Y=mm.lin('layers.7.e_proj.weight',e)[None]+np.stack([mm.lin('layers.7.h_proj.weight',hh) for hh in h])
        l=7;p='layers.7.'
        for nm,fn in (('attn',lambda y:mm.attn(l,y,t)),('ffn',lambda y:mm.moe(l,y,tok[t+1]))):
            y,post,comb=mm.hc_pre(Y,p+f'hc_{nm}_fn',p+f'hc_{nm}_scale',p+f'hc_{nm}_base')
            o=fn(rms(y,W2[p+f'{nm}_norm.weight'],1e-6))
            Y=post[:,None]*o[None]+comb.T@Y
        v=Y.reshape(-1); ms=(W['mtp.0.hc_head_fn']@v)/np.sqrt((v*v).mean()+1e-6); pre=sig(ms*W['mtp.0.hc_head_scale'][0]+W['mtp.0.hc_head_base'])+1e-6
        ml=W['head.weight']@rms((pre[:,None]*Y).sum(0),W['mtp.0.norm.weight'],1e-6)
        if t in want:
            rec[t]=dict(argmax=int(lg.argmax()),top=float(lg.max()),first=[round(float(z),6) for z in lg[:6]],l2=float(np.sqrt((lg**2).sum())),Xl2=float(np.sqrt((X**2).sum())),mtp_argmax=int(ml.argmax()),mtp_first=[round(float(z),6) for z in ml[:4]])
    for t in sorted(rec): print(t,tok[t],rec[t])
