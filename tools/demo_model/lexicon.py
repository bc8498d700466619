"""Word lists that the generated conversations draw from (our own selection of common facts and words)."""


def _pairs(text):
    return [tuple(line.split("|")) for line in text.strip().split("\n")]


# country, capital, country in Chinese, capital in Chinese
CAPITALS = _pairs("""France|Paris|法国|巴黎
Japan|Tokyo|日本|东京
Italy|Rome|意大利|罗马
Spain|Madrid|西班牙|马德里
Germany|Berlin|德国|柏林
China|Beijing|中国|北京
Egypt|Cairo|埃及|开罗
Peru|Lima|秘鲁|利马
Cuba|Havana|古巴|哈瓦那
Kenya|Nairobi|肯尼亚|内罗毕
Norway|Oslo|挪威|奥斯陆
Greece|Athens|希腊|雅典
Portugal|Lisbon|葡萄牙|里斯本
Austria|Vienna|奥地利|维也纳
Poland|Warsaw|波兰|华沙
Russia|Moscow|俄罗斯|莫斯科
England|London|英国|伦敦
Ireland|Dublin|爱尔兰|都柏林
Sweden|Stockholm|瑞典|斯德哥尔摩
Finland|Helsinki|芬兰|赫尔辛基
Denmark|Copenhagen|丹麦|哥本哈根
Hungary|Budapest|匈牙利|布达佩斯
Turkey|Ankara|土耳其|安卡拉
India|New Delhi|印度|新德里
Thailand|Bangkok|泰国|曼谷
Vietnam|Hanoi|越南|河内
Korea|Seoul|韩国|首尔
Canada|Ottawa|加拿大|渥太华
Mexico|Mexico City|墨西哥|墨西哥城
Brazil|Brasilia|巴西|巴西利亚
Chile|Santiago|智利|圣地亚哥
Argentina|Buenos Aires|阿根廷|布宜诺斯艾利斯
Australia|Canberra|澳大利亚|堪培拉
Belgium|Brussels|比利时|布鲁塞尔
Switzerland|Bern|瑞士|伯尔尼
Iceland|Reykjavik|冰岛|雷克雅未克""")

# more places that tools are asked about
CITIES_EN = ("Lyon Osaka Milan Naples Munich Hamburg Shanghai Boston Chicago Denver Seattle Dallas Houston Miami Austin "
             "Phoenix Toronto Sydney Geneva Zurich Porto Seville Venice Turin Dubai Mumbai Lagos Kyoto Busan Leeds "
             "Bristol Oxford Glasgow Antwerp Cologne Dresden Nice Lille Bergen Malmo Krakow Prague").split()
CITIES_ZH = "上海 广州 深圳 杭州 南京 成都 武汉 西安 重庆 天津 苏州 青岛 大连 厦门 长沙 昆明 香港 台北 大阪 纽约".split()

NAMES_EN = ("Anna Ben Clara David Emma Frank Grace Henry Iris Jack Kate Leo Maria Nina Oscar Paul Rosa Sam Tina Victor "
            "Alice Bob Carol Daniel Eva Felix Hugo Ivan Julia Karl Laura Mark Nora Peter Sara Tom").split()
NAMES_ZH = "小明 小红 小华 小丽 李雷 张伟 王芳 刘洋 陈晨 赵敏 小刚 小雨 李娜 王强 张丽 周杰".split()

LIKES = _pairs("""tea|茶
coffee|咖啡
music|音乐
chess|象棋
football|足球
rice|米饭
noodles|面条
books|书
cats|猫
dogs|狗
swimming|游泳
running|跑步
painting|画画
apples|苹果
films|电影
dancing|跳舞""")

# English word, Chinese word: translations, copying, recall
WORDS = _pairs("""apple|苹果
river|河流
stone|石头
cloud|云
tiger|老虎
window|窗户
paper|纸
silver|银
garden|花园
winter|冬天
bridge|桥
lemon|柠檬
pocket|口袋
mirror|镜子
island|岛
rabbit|兔子
candle|蜡烛
forest|森林
button|按钮
ladder|梯子
desert|沙漠
violin|小提琴
planet|行星
anchor|锚
basket|篮子
hammer|锤子
kettle|水壶
orange|橙子
pepper|胡椒
tunnel|隧道
yellow|黄色
green|绿色
red|红色
blue|蓝色
sun|太阳
moon|月亮
star|星星
water|水
fire|火
tree|树
flower|花
bird|鸟
fish|鱼
horse|马
dog|狗
cat|猫
house|房子
door|门
table|桌子
chair|椅子
book|书
friend|朋友
teacher|老师
student|学生
school|学校
city|城市
road|路
train|火车
ship|船
summer|夏天
spring|春天
autumn|秋天
bread|面包
milk|牛奶
salt|盐
sugar|糖
rain|雨
snow|雪
wind|风
mountain|山""")

OPPOSITES = _pairs("""hot|cold|热|冷
big|small|大|小
fast|slow|快|慢
high|low|高|低
long|short|长|短
new|old|新|旧
light|dark|亮|暗
open|closed|开|关
early|late|早|晚
rich|poor|富|穷
strong|weak|强|弱
happy|sad|高兴|难过
hard|soft|硬|软
full|empty|满|空
near|far|近|远
dry|wet|干|湿""")

THINGS = _pairs("""the sky|blue|天空|蓝色
grass|green|草|绿色
snow|white|雪|白色
coal|black|煤|黑色
a banana|yellow|香蕉|黄色
blood|red|血|红色
a carrot|orange|胡萝卜|橙色
milk|white|牛奶|白色""")

DAYS_EN = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
DAYS_ZH = "星期一 星期二 星期三 星期四 星期五 星期六 星期日".split()
SKY = _pairs("""sunny|晴
cloudy|多云
rainy|有雨
windy|有风
snowy|有雪""")
FILLER = ("key door lamp clock radio phone desk shelf bottle plate spoon knife glove scarf jacket helmet wheel engine "
          "ticket letter stamp pencil eraser ruler brush towel pillow blanket carpet curtain needle thread ribbon "
          "copper iron marble velvet cotton walnut maple saddle drum flute piano camera castle tower harbor market "
          "museum station valley meadow canyon glacier volcano comet rocket tractor wagon barrel bucket shovel").split()

# frequent words of ordinary prose; the vocabulary knows them, the generated text need not use them
COMMON_EN = """the of and to in a is that for it as was with be by on not he his but at are this have from or had an they
which one you were all her she there would their we him been has when who will no more if out so up said what its about
than into them can only other time new some could these two may first then do any like my now over such our man me even
most made after also did many off before must well back through years much where your way down should because long each
just state those people too how little good world make very year still see own work men day get here between both life
being under three never know same last another while us might great old come since against go came right used take
states himself few house use during without again place around however home small found thought went say part once
general high upon school every does got united left number course war until always away something fact water though less
public put think almost hand enough far took head yet better display nothing night end why called find going look asked
later knew point next week city set open help want feel need try turn move play show tell write read run walk talk stand
sit begin start stop keep let leave bring buy pay give send meet learn live love hope wait answer question word sentence
letter story number letter name list file line page code data test model server token memory cache answer request""".split()
COMMON_ZH = """我们 你们 他们 她 他 它 这个 那个 什么 怎么 为什么 哪里 时候 知道 可以 没有 不是 已经 因为 所以 但是 如果 还是 就是
一个 一些 很多 非常 可能 应该 需要 觉得 看到 听到 说话 工作 学习 生活 时间 问题 办法 东西 地方 今天 明天 昨天 早上 晚上 公园 散步 世界
国家 人们 孩子 父母 朋友 开始 结束 以后 以前 里面 外面 上面 下面 中间 左边 右边 大家 自己 别人 事情 喜欢 希望 告诉 帮助 谢谢 再见 请问
多少 几个 第一 最后 重要 容易 困难 简单 快乐 漂亮 年轻 健康 安全 自由 科学 技术 电脑 手机 网络 程序 代码 数据 服务 语言 文字 句子 词语""".split()


def english():
    """Every English word of the lists above, each once: what copies and look-ups draw from."""
    rows = [*WORDS, *LIKES, *SKY]
    flat = [row[0] for row in rows] + [w for row in OPPOSITES for w in row[:2]] + [row[1] for row in THINGS]
    flat += [w for row in CAPITALS for w in row[:2]] + CITIES_EN + NAMES_EN + DAYS_EN + FILLER + COMMON_EN
    return sorted({w for w in flat if " " not in w and len(w) > 1})


def invented(rng):
    """A capitalised word that no list holds, made of random syllables: 'Velnoro'."""
    parts = [rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") + rng.choice(["", "", "l", "n", "r", "s"])
             for _ in range(rng.randint(2, 3))]
    return "".join(parts).capitalize()


def invented_zh(rng):
    """Two or three random characters of the Chinese lists, as an unknown name or place."""
    return "".join(rng.sample(CHARACTERS_ZH, rng.randint(2, 3)))


def chinese(common=True):
    """Every Chinese word of the lists above; without `common` only those that fill slots."""
    pairs = WORDS + LIKES + OPPOSITES + THINGS + SKY + CAPITALS
    flat = [word for row in pairs for word in row] + CITIES_ZH + NAMES_ZH + DAYS_ZH + (COMMON_ZH if common else [])
    return [word for word in flat if "\u4e00" <= word[0] <= "\u9fff"]


ENGLISH = english()
CHINESE = sorted({*chinese()})
CHARACTERS_ZH = sorted({c for word in chinese(common=False) for c in word})


def known(word):
    """Whether a slot's word stands in a list above (or is a number), rather than being invented."""
    return word in KNOWN or word.isdigit()


KNOWN = {*ENGLISH, *CHINESE, *(word for row in CAPITALS for word in row)}
